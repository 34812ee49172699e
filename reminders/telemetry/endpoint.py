"""The HTTP endpoint of a process: is it alive, may it be given work, what does it measure."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import REGISTRY, CollectorRegistry

from reminders.telemetry.metrics import CONTENT_TYPE, exposition

Problems = Callable[[], Sequence[str]]
"""Why the process is not ready; empty if it is. Called on each request: cheap and without I/O."""


@asynccontextmanager
async def endpoint(
    host: str, port: int, problems: Problems, *, registry: CollectorRegistry = REGISTRY
) -> AsyncIterator[int]:
    """Serves until the block ends, and gives the port that was bound (another one only for 0).

    /live     200 as long as the event loop turns.
    /ready    200 or 503, and the reasons: {"ready": false, "problems": ["…"]}.
    /metrics  Prometheus's text format.

    Raises:
        OSError: The port can't be bound.
    """
    runner = web.AppRunner(_application(problems, registry), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _application(problems: Problems, registry: CollectorRegistry) -> web.Application:
    async def live(_request: web.Request) -> web.Response:
        return web.json_response({"live": True})

    async def ready(_request: web.Request) -> web.Response:
        reasons = list(problems())
        return web.json_response(
            {"ready": not reasons, "problems": reasons}, status=503 if reasons else 200
        )

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=exposition(registry), headers={"Content-Type": CONTENT_TYPE})

    application = web.Application()
    application.add_routes(
        [web.get("/live", live), web.get("/ready", ready), web.get("/metrics", metrics)]
    )
    return application
