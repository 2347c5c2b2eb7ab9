"""What commands print: JSON, tables and lists.

rich is slow to import, so it is imported only when there is something to show.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from tenure.client.json_values import to_json_value
from tenure.client.report.words import clock, inline

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDE = 110
"""Terminal columns from which a table shows all of its columns."""

UNBOUNDED = 10_000  # columns without a terminal: output to a pipe is not truncated

STATE_STYLES = {
    "running": "cyan",
    "retry": "yellow",
    "dead_letter": "red",
    "failed": "red",
    "completed": "green",
    "canceled": "dim",
}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    right: bool = False
    flexible: bool = False
    """Truncated on a narrow terminal."""
    optional: bool = False
    """Omitted on a narrow terminal."""
    style: str = ""


def print_json(document: object) -> None:
    """One JSON document: on a single line, or indented on a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    click.echo(json.dumps(document, default=to_json_value, indent=indent))


def show_table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    from rich.table import Table  # noqa: PLC0415

    console = _console()
    shown = [not column.optional or console.width >= WIDE for column in columns]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in (column for column, wanted in zip(columns, shown, strict=True) if wanted):
        table.add_column(column.name, justify="right" if column.right else "left", no_wrap=not column.flexible)
    for row in rows:
        cells = zip(columns, row, shown, strict=True)
        table.add_row(*[_cell(column, value) for column, value, wanted in cells if wanted])
    _show(console, table)


def show_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """A name and a value on each line. Values that are None are omitted."""
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            table.add_row(name, _text(value, STATE_STYLES.get(str(value), "") if name == "state" else ""))
    _show(_console(), table)


def show(what: object) -> None:
    """Prints something that rich can render."""
    _show(_console(), what)


def is_terminal() -> bool:
    return _console().is_terminal


def safe(text: str) -> str:
    """The text on one line, without characters that act on a terminal."""
    return inline(text)


def wants_json() -> bool:
    """Whether the current command was called with --json."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))


def note(words: str) -> None:
    """Prints to stderr, so that it does not get into a pipe."""
    click.echo(words, err=True)


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """`3 m ago`, `in 2 h`."""
    if moment is None:
        return "-"
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"{rough(seconds)} ago" if seconds > 0 else f"in {rough(-seconds)}"


def rough(seconds: float) -> str:
    """Rounded to one unit: what is due in two days is shown as `2 d` also a moment later."""
    for unit, size, most in (("s", 1, 60), ("m", 60, 60), ("h", 3600, 48)):
        if round(seconds / size) < most:
            return f"{round(seconds / size)} {unit}"
    return f"{round(seconds / 86400)} d"


def moment(at: datetime | None) -> str | None:
    """As in reports and explanations, in UTC."""
    return None if at is None else f"{clock(at, 'seconds')} ({ago(at)})"


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = UNBOUNDED
    return console


def _show(console: Console, what: object) -> None:
    if console.is_terminal:
        console.print(what)
        return
    with console.capture() as captured:
        console.print(what)
    click.echo("\n".join(_trimmed(captured.get())))


def _trimmed(text: str) -> Iterator[str]:
    return (line.rstrip() for line in text.splitlines())


def _cell(column: Column, value: object) -> Text:
    style = STATE_STYLES.get(str(value), "") if column.name == "STATE" else column.style
    text = _text("-" if value is None else value, style)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _text(value: object, style: str) -> Text:
    """Untrusted text, so control characters are escaped."""
    from rich.text import Text  # noqa: PLC0415

    return Text("\n".join(inline(line) for line in str(value).splitlines()), style)
