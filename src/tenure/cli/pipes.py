"""Output to a pipe whose reader has closed it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import click

from tenure.cli import exit_codes


def echo_if_open(words: str, *, err: bool = False) -> None:
    """Prints a line that the command can do without: it continues if the pipe is closed."""
    try:
        click.echo(words, err=err)
    except BrokenPipeError:
        discard_output(sys.stderr if err else sys.stdout)


@contextmanager
def exit_on_closed_pipe() -> Iterator[None]:
    """A closed pipe ends the command without a message, as it ends `cat` and `ls`."""
    try:
        yield
    except BrokenPipeError:
        discard_output(sys.stdout)
        discard_output(sys.stderr)
        raise click.exceptions.Exit(exit_codes.CLOSED_PIPE) from None


def discard_output(stream: TextIO) -> None:
    """Sends further output to /dev/null, so that the interpreter's last flush does not fail as well."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
