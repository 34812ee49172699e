"""The files of `tocsin subscriber import`: the lines that come in, the secrets that are kept."""

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import typer


def keep(secrets: IO[str], subscriber_id: str, secret: str) -> None:
    """A line of JSON."""
    secrets.write(json.dumps({"subscriberId": subscriber_id, "secret": secret}) + "\n")


@contextmanager
def reading(file: Path) -> Iterator[Iterable[str]]:
    """Its lines; bytes that are no UTF-8 become surrogates, so that they spoil only their line."""
    if str(file) == "-":
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        yield sys.stdin
        return
    try:
        opened = file.open(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from error
    with opened:
        yield opened


@contextmanager
def keeping(secrets_to: Path | None) -> Iterator[IO[str] | None]:
    """For its owner alone. A run that goes on appends; two lines of one subscriber are equal."""
    if secrets_to is None:
        yield None
        return
    try:
        descriptor = os.open(secrets_to, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise typer.BadParameter(f"--secrets-to {secrets_to}: {error.strerror}") from error
    with os.fdopen(descriptor, "a", encoding="utf-8") as opened:
        yield opened
