"""Every setting. The text below a field is its documentation, and what an error says is right."""

import re
from datetime import timedelta
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from reminders.config.channels import ChannelSettings
from reminders.config.destinations import DestinationSettings
from reminders.config.durations import parse_duration
from reminders.config.operator import OperatorSettings
from reminders.config.problems import ConfigError, Given, problem_of
from reminders.config.sources import (
    PREFIX,
    ConfigFileError,
    config_file,
    read_config_file,
)
from reminders.model.definition import RETRY_SCHEDULE
from reminders.sentinel_url import is_sentinel_url, parse_sentinel_url
from reminders.urls import url_problem

Service = Literal["scheduler", "scanner", "expander", "dispatcher"]


def _duration(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) else value


def _waits(value: Any) -> Any:
    """`0s, 5s, 5m` or a list: the first attempt comes at once."""
    items = value.split(",") if isinstance(value, str) else list(value)
    waits = tuple(_duration(item) for item in items)
    if waits and waits[0] != timedelta(0):
        raise ValueError("the first attempt waits for nothing: begin with 0s")
    return waits


def _hosts(value: Any) -> Any:
    """`a, b:9043` or a list, each with its port."""
    items = value.split(",") if isinstance(value, str) else list(value)
    return tuple(_host_port(item.strip(), default_port=9042) for item in items if item.strip())


def _host_port(text: str, default_port: int | None = None) -> str:
    parts = urlsplit(f"//{text}")
    port = parts.port if parts.port is not None else default_port  # raises ValueError itself
    if not parts.hostname or port is None or parts.path or parts.username:
        raise ValueError(f"{text!r} is not host:port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"


def _redis_url(text: str) -> str:
    if is_sentinel_url(text):
        parse_sentinel_url(text)
    elif urlsplit(text).scheme not in {"redis", "rediss", "unix"}:
        raise ValueError("the URL starts with redis://, rediss://, unix:// or redis+sentinel://")
    elif not text.startswith("unix://") and not _names_host(text):
        raise ValueError(
            "not host:port/number; in a password / is %2F, # is %23, ? is %3F and @ is %40"
        )
    return text


def _names_host(url: str) -> bool:
    parts = urlsplit(url)
    try:
        named = bool(parts.hostname) and parts.port != 0
        return named and re.fullmatch(r"/?[0-9]*", parts.path) is not None
    except ValueError:  # it quotes what may be a part of a password
        return False


def _replication(value: Any) -> Any:
    """`3`, or `dc1:3,dc2:3`, or a table of the same."""
    if isinstance(value, int):
        return {"": value}
    if not isinstance(value, str):
        return value
    if value.strip().isdigit():
        return {"": int(value)}
    pairs = [item.partition(":") for item in value.split(",")]
    if not all(name.strip() and count.strip().isdigit() for name, _, count in pairs):
        raise ValueError(f"{value!r} is neither a number nor datacenter:number, …")
    return {name.strip(): int(count) for name, _, count in pairs}


Duration = Annotated[timedelta, BeforeValidator(_duration), Field(gt=timedelta(0))]
RetrySchedule = Annotated[
    tuple[Annotated[timedelta, Field(ge=timedelta(0), le=timedelta(days=3))], ...],
    NoDecode,
    BeforeValidator(_waits),
    Field(min_length=1, max_length=32),
]
Hosts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_hosts), Field(min_length=1)]
HostPort = Annotated[str, BeforeValidator(_host_port)]
RedisUrl = Annotated[str, BeforeValidator(_redis_url)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Factor = Annotated[int, Field(ge=1, le=100)]
Replication = Annotated[
    dict[str, Factor], NoDecode, BeforeValidator(_replication), Field(min_length=1)
]


class Settings(ChannelSettings, DestinationSettings, OperatorSettings, BaseSettings):
    """What is in force, frozen. `load_settings` makes it; tests may pass values by keyword."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        validate_default=True,
    )

    cassandra_hosts: Hosts = ("127.0.0.1:9042",)
    """Contact points as host:port, separated by commas; the port is 9042 unless given."""
    cassandra_keyspace: str = Field(default="tocsin", pattern=r"^[a-z][a-z0-9_]{0,47}$")
    """A name of at most 48 characters of a-z, 0-9 and _, a letter first."""
    cassandra_datacenter: str | None = None
    """The local data centre, which LOCAL_QUORUM refers to; needed where there are several."""
    cassandra_replication: Replication = {"": 1}
    """Copies in a new keyspace: a number (SimpleStrategy), or dc1:3,dc2:3 for each data centre."""
    cassandra_username: str | None = None
    """With the password, or both unset."""
    cassandra_password: SecretStr | None = None
    """With the user name, or both unset."""
    redis_url: RedisUrl = "redis://127.0.0.1:6379/0"
    """redis://[[user]:password@]host:port/database, rediss:// for TLS; or, to follow a fail-over,
    redis+sentinel://[[user]:password@]host:port[,host:port…]/service[/database] with the sentinels.
    """

    shards: int = Field(default=64, ge=1, le=4096)
    """Parts that the work is split into, 1 to 4096; must be what the keyspace stores."""
    grpc_address: HostPort = "127.0.0.1:50051"
    """host:port on which the scheduler listens, and which client commands call."""
    http_host: str = "127.0.0.1"
    """Where each service answers /live, /ready and /metrics."""
    scanner_http_port: Port = 9101
    """0 to 65535; 0 picks a free one, which the log names."""
    expander_http_port: Port = 9102
    """0 to 65535; 0 picks a free one, which the log names."""
    dispatcher_http_port: Port = 9103
    """0 to 65535; 0 picks a free one, which the log names."""
    scheduler_http_port: Port = 9104
    """0 to 65535; 0 picks a free one, which the log names."""

    lookahead: Duration = timedelta(seconds=30)
    """How far ahead a scanner reads; a duration such as 30s, the same in every process."""
    claim_ahead: Annotated[Duration, Field(le=timedelta(milliseconds=100))] = timedelta(
        milliseconds=20
    )
    """How long before its time a reminder is handed to a dispatcher, which holds it until the very
    instant, 0s to 100ms; a cancel that comes later is too late. 0s: at its time; it rings later."""
    void_margin: Duration = timedelta(seconds=90)
    """How long beyond the look-ahead a void lives in Redis; a duration such as 90s."""
    lease_ttl: Duration = timedelta(seconds=3)
    """How long a shard stays with a scanner that fell silent; a duration such as 3s."""
    lease_renew_every: Duration = timedelta(seconds=1)
    """A duration of at most half of TOCSIN_LEASE_TTL, such as 1s."""
    settle_grace: Duration = timedelta(minutes=2)
    """How old a minute must be before it can be settled; a duration such as 2m."""
    retention: Duration = timedelta(days=90)
    """How long ended reminders can still be read; a duration such as 90d."""

    rule_min_interval: Annotated[Duration, Field(ge=timedelta(seconds=1), le=timedelta(days=1))] = (
        timedelta(seconds=1)
    )
    """What must lie between two occurrences of a rule, 1s to 1d, such as 1m; others are refused."""
    schedule_horizon: Annotated[Duration, Field(ge=timedelta(days=1), le=timedelta(days=5_479))] = (
        timedelta(days=3_653)
    )
    """How far ahead a time, a delay or a rule's start may lie, 1d to 5479d (fifteen years)."""
    allow_loopback_http: bool = False
    """Whether webhooks may go to http://127.0.0.1: true only for development."""
    dispatcher_concurrency: int = Field(default=512, ge=1, le=100_000)
    """Attempts under way in one dispatcher at receivers that answer soon, 1 to 100000; half as many
    again may be under way at those that do not."""
    dispatcher_destination_concurrency: int = Field(default=64, ge=1, le=100_000)
    """Of these, at most so many to one host, 1 to 100000; to the mail server, as many as there are
    connections (TOCSIN_SMTP_CONNECTIONS)."""
    retry_schedule: RetrySchedule = RETRY_SCHEDULE
    """The longest wait before each attempt, separated by commas, such as 0s,5s,5m,30m,2h: 0s first,
    at most 32, each at most 3d. The last one holds for all further attempts."""
    call_timeout: Annotated[
        Duration, Field(ge=timedelta(milliseconds=100), le=timedelta(minutes=5))
    ] = timedelta(seconds=5)
    """How long a call waits for the stores before it is answered UNAVAILABLE, 100ms to 5m; a
    caller's own deadline where that is shorter. Repeating it is safe."""
    scheduler_max_inflight: int = Field(default=2_000, ge=1, le=1_000_000)
    """Creates that one scheduler holds at a time before it lets callers wait, 1 to 1000000."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """debug, info, warning or error."""
    log_format: Literal["json", "console"] = "json"
    """json, or console for people."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.lease_renew_every * 2 > self.lease_ttl:
            raise _conflict("lease_renew_every", "too slow for TOCSIN_LEASE_TTL")
        if (self.cassandra_username is None) != (self.cassandra_password is None):
            missing = "password" if self.cassandra_password is None else "username"
            raise _conflict(f"cassandra_{missing}", "missing beside the other one")
        if "" in self.cassandra_replication and len(self.cassandra_replication) > 1:
            raise _conflict("cassandra_replication", "a data centre has no name")
        if self.events_url is not None:
            loopback, ports = self.allow_loopback_http, self.ports
            problem = url_problem(self.events_url, allow_loopback_http=loopback, ports=ports)
            if problem is not None:
                raise _conflict("events_url", problem)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Keywords (tests), environment, file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, InitSettingsSource(settings_cls, _from_file())

    def http_port(self, service: Service) -> int:
        """Where that service answers about its health."""
        ports: dict[str, int] = {
            "scanner": self.scanner_http_port,
            "expander": self.expander_http_port,
            "dispatcher": self.dispatcher_http_port,
            "scheduler": self.scheduler_http_port,
        }
        return ports[service]


def load_settings(**told: Any) -> Settings:
    """What is in force for this process. `told`: what its command decides, whatever is configured.

    Raises:
        ConfigError: With everything that is wrong, not only the first.
    """
    try:
        return Settings(**told)
    except ConfigFileError as error:
        raise ConfigError([str(error)]) from error
    except ValidationError as error:
        given = given_values()
        raise ConfigError(
            [problem_of(details, given, Settings.model_fields) for details in error.errors()]
        ) from None  # the cause would repeat secrets


def given_values() -> dict[str, Given]:
    """What the environment or the file says about each setting, unchecked."""
    path = config_file()
    given = {name: Given(str(path), raw) for name, raw in _from_file().items()}
    environment = EnvSettingsSource(Settings)()
    given.update({name: Given("environment", raw) for name, raw in environment.items()})
    return given


def _from_file() -> dict[str, Any]:
    return read_config_file(config_file())


def _conflict(field: str, message: str) -> PydanticCustomError:
    return PydanticCustomError("conflict", message, {"field": field})
