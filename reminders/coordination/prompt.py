"""Connections that end at once when their caller is cancelled.

The client waits for each write with `asyncio.wait_for`. On Python 3.11 that swallows a cancellation
that comes in the moment in which the write ends: a loop that was told to stop goes on for ever
(seen: a scanner that did not end on SIGTERM). It also takes a task for each write.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from redis.asyncio.connection import (
    AbstractConnection,
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError


class _Prompt(AbstractConnection):
    """What replaces the client's way of writing."""

    async def send_packed_command(
        self,
        command: bytes | str | Iterable[bytes],
        check_health: bool = True,  # noqa: FBT001, FBT002 (the client's protocol)
    ) -> None:
        """As the client's own; its health checks are not used here."""
        del check_health
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        if isinstance(command, str):
            command = command.encode()
        writer: Any = self._writer
        try:
            async with asyncio.timeout(self.socket_timeout):
                writer.writelines([command] if isinstance(command, bytes) else command)
                await writer.drain()
        except TimeoutError:
            await self.disconnect(nowait=True)
            raise RedisTimeoutError("writing took too long") from None
        except OSError as error:
            await self.disconnect(nowait=True)
            raise RedisConnectionError(f"writing failed: {error}") from error
        except BaseException:  # half a command may have been written
            await self.disconnect(nowait=True)
            raise


class PromptConnection(_Prompt, Connection):
    """TCP."""


class _PromptSSLConnection(_Prompt, SSLConnection):
    """TLS."""


class _PromptUnixConnection(_Prompt, UnixDomainSocketConnection):
    """A socket of this machine."""


PROMPT: dict[type[AbstractConnection], type[AbstractConnection]] = {
    Connection: PromptConnection,
    SSLConnection: _PromptSSLConnection,
    UnixDomainSocketConnection: _PromptUnixConnection,
}
"""By the client's own class for it."""
