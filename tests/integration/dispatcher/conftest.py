"""A real HTTP receiver on loopback."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Received:
    """One request, as it arrived."""

    headers: dict[str, str]
    body: bytes
    peer: tuple[str, int]
    path: str


@dataclass
class Receiver:
    """Keeps what it receives; answers as the test says."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    answer: Answer | None = None

    def url(self, path: str = "/hook") -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}{path}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Any request."""
        body = await request.read()
        peer = request.transport.get_extra_info("peername") if request.transport else ("", 0)
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.received.append(Received(headers, body, peer, request.path))
        return await self.answer(request) if self.answer else web.Response(text="thanks")

    def answers(self, status: int, text: str = "", **headers: str) -> None:
        """The same to everybody."""

        async def answer(_request: web.Request) -> web.Response:
            return web.Response(
                status=status,
                text=text,
                headers={name.replace("_", "-"): value for name, value in headers.items()},
            )

        self.answer = answer


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Listens on a free port."""
    it = Receiver()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", it.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    it.port = runner.addresses[0][1]
    yield it
    await runner.cleanup()
