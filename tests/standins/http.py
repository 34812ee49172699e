"""An HTTP server on a free port of loopback, for stand-ins of providers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handle: Handler) -> AsyncIterator[str]:
    """Every request goes to `handle`; gives the base URL."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def cut(request: web.Request) -> web.Response:
    """The connection is gone before the answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
