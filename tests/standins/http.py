"""An HTTP server on a free port of loopback, for stand-ins of providers."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handle: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Every request goes to `handle`; gives the base URL: HTTPS, to localhost, with a context.

    As vendors' servers do, it prefers HTTP/2 where a client offers that; but it can't speak it.
    """

    async def checked(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        tls = request.transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            return cut(request)  # HTTP/1.1 on a connection that was to speak HTTP/2
        return await handle(request)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", checked)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    if context is not None:
        context.set_alpn_protocols(["h2", "http/1.1"])
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    port = runner.addresses[0][1]
    try:
        yield f"https://localhost:{port}" if context is not None else f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


def cut(request: web.Request) -> web.Response:
    """The connection is gone before the answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
