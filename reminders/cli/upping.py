"""`tocsin up`: the whole of Tocsin on this machine, until Ctrl-C."""

import time
from pathlib import Path

from reminders.cli import render
from reminders.cli.stack import local_stack

ALIVE_EVERY_S = 0.5


def up(data_dir: Path) -> None:
    """Returns only by an exception: Ctrl-C, or the failure of a service."""
    console = render.console()

    def say(line: str) -> None:
        console.print(f"  {line}", style="dim")

    with local_stack(data_dir, say) as stack:
        console.print(
            f"Tocsin is up: gRPC on {stack.grpc_address}, data and logs in {data_dir}.\n"
            "Loopback HTTP is allowed for webhooks: only local runs do that. Ctrl-C stops it.\n"
            f"For commands that work on its servers, such as `tocsin shards`:\n  {stack.servers}",
            soft_wrap=True,  # to be copied
        )
        while True:
            stack.ensure_alive()
            time.sleep(ALIVE_EVERY_S)
