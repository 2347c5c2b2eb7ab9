"""Lists of jobs and chains: as many pages as fill the limit, and a note on how to continue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sized
from typing import TypeVar

import click

from tenure.cli import output, param_types
from tenure.client.pages import LARGEST_PAGE

T = TypeVar("T")

MAX_PAGES = 50
"""A page passes over some thousand jobs. After this many pages the user decides whether to continue."""

limit_option = click.option("--limit", "-n", type=click.IntRange(1), default=20, show_default=True, help="How many to list.")
after_option = click.option("--after", type=param_types.CURSOR, help="Continue after the previous page.")


async def gather(
    read: Callable[[int, str | None], Awaitable[tuple[list[T], str | None]]], limit: int, after: str | None
) -> tuple[list[T], str | None]:
    """`read(limit, after)` gives what it found and where the next page begins. It may find little although there is more."""
    found: list[T] = []
    for _ in range(MAX_PAGES):
        more, after = await read(min(limit - len(found), LARGEST_PAGE), after)
        found += more
        if after is None or len(found) >= limit:
            break
    return found, after


def note_more(found: Sized, after: str | None, nothing: str) -> None:
    if after:
        output.note(f"there are more: --after {after}" if found else f"no matches yet; continue with --after {after}")
    elif not found:
        output.note(nothing)
