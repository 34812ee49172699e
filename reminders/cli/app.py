"""All commands, and the one place where failures become text and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from reminders.cli import (
    changing,
    ended,
    endpoints,
    operate,
    preview,
    reading,
    recipients,
    ringing,
    subscribers,
)
from reminders.cli.failure import CommandError

_TRACEBACK_VARIABLE = "TOCSIN_TRACEBACK"

app = typer.Typer(
    name="tocsin",
    help="Tocsin, a durable reminder service: tell it once, it rings at that second.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
changing.register(app)
reading.register(app)
ringing.register(app)
preview.register(app)
app.add_typer(recipients.recipient, name="recipient", rich_help_panel="Client")
subscribers.register(app)
app.add_typer(ended.ended, name="ended", rich_help_panel="Operation")
app.add_typer(endpoints.endpoints, name="endpoints", rich_help_panel="Operation")
operate.register(app)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a command and exits: 0, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C."""
    try:
        app(args=list(arguments) if arguments is not None else None, prog_name="tocsin")
    except CommandError as error:
        _fail(error.lines, error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has seen enough, as in `tocsin list … | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if os.environ.get(_TRACEBACK_VARIABLE):
            raise
        hint = f"a bug, it seems: {_TRACEBACK_VARIABLE}=1 shows where"
        _fail([f"{type(error).__name__}: {error}", hint], 1)
    sys.exit(0)


def _fail(lines: Sequence[str], code: int) -> NoReturn:
    first, *rest = lines or ("failed",)
    sys.stderr.write("\n  ".join([f"error: {first}", *rest]) + "\n")
    sys.exit(code)
