"""The command line: `tocsin`.

Three families of commands, declared in `app` and lazily backed by the other modules, so that a
client command starts in a fraction of a second:

client    `changing`: `create` `reschedule` `update` `pause` `resume` `cancel` `cancel-group`;
          `reading`: `get` `list` `occurrences` `deliveries` `explain` `watch`;
          `ringing`: `trigger` `backfill` `replay`. All by gRPC.
          `options` declares the flags; `requests`, `channels` and `values` turn them into
          messages; `rpc` calls and explains failures, `render` shows answers, `explaining` and
          `watching` those that are long.
          `recipient …`: `recipients`.
          `ended …`, `endpoints …`: by modules of their names, for operators.
          `subscriber …`: `subscribers`; `importing` puts many from a file (`import_files`).
          `preview` asks nobody: `previewing` computes here, by the same functions as the server.
services  `scheduler` `scanner` `expander` `dispatcher` become `python -m <service>`;
          `migrate` and `config` run here.
local     `up` and `demo` start processes (`stack`, `children`) and stop exactly those; `receiver`
          is the demo's webhook, `inmemory` everything in one process.

Nothing imports this package. It imports no service, since those are processes of their own;
`inmemory`, which only the command that runs it imports, is the exception.
"""

from typing import NoReturn


def main() -> NoReturn:
    """The `tocsin` command."""
    from reminders.cli.app import run  # noqa: PLC0415 - what imports the package may want no typer

    run()
