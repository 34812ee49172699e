"""The settings of what the operator is told and when endpoints are disabled: in `Settings`."""

from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from reminders.config.durations import parse_duration
from reminders.signing_secrets import key_of


def _secrets(value: Any) -> Any:
    """`whsec_new whsec_old`, or a list."""
    if value is None:
        return ()
    given = value.split() if isinstance(value, str) else tuple(value)
    if len(given) > 2:
        raise ValueError(f"{len(given)} secrets; one, or two by a blank while it rotates")
    for each in given:
        key_of(each.get_secret_value() if isinstance(each, SecretStr) else str(each))
    return tuple(given)


def _duration(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) else value


Secrets = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_secrets)]
LongTime = Annotated[
    timedelta,
    BeforeValidator(_duration),
    Field(ge=timedelta(hours=1), le=timedelta(days=3_650)),
]


class OperatorSettings(BaseSettings):
    """Of dispatchers; the same in all of them."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    disable_endpoint_after: LongTime = timedelta(days=5)
    """How long an endpoint fails without one success until it is disabled, 1h to 3650d."""
    events_url: str | None = None
    """Where events (lost deliveries, disabled endpoints) are posted to; unset: nowhere."""
    events_secret: Secrets = ()
    """whsec_… that signs them; two by a blank while it rotates, new first. Needed with the URL."""

    @property
    def events_secret_texts(self) -> tuple[str, ...]:
        """`events_secret` in the clear: for who signs."""
        return tuple(each.get_secret_value() for each in self.events_secret)

    @model_validator(mode="after")
    def _signed(self) -> Self:
        """An operator's endpoint must be able to tell ours from anybody's."""
        if self.events_url is not None and not self.events_secret:
            raise PydanticCustomError(
                "conflict", "needed by TOCSIN_EVENTS_URL", {"field": "events_secret"}
            )
        return self
