"""Output whose reader goes away."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import click

from tenure.cli import codes


def note(words: str, *, err: bool = False) -> None:
    """A line that does not matter to the work of the command: that continues when the reader of its output goes away."""
    try:
        click.echo(words, err=err)
    except BrokenPipeError:
        discard(sys.stderr if err else sys.stdout)


@contextmanager
def unread_ends() -> Iterator[None]:
    """A reader that goes away ends the command without a word, as it ends `cat` and `ls`."""
    try:
        yield
    except BrokenPipeError:
        discard(sys.stdout)
        discard(sys.stderr)
        raise click.exceptions.Exit(codes.UNREAD) from None


def discard(stream: TextIO) -> None:
    """From now on nothing is written: the last flush, when the interpreter ends, must not fail as well."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
