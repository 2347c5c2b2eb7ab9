"""Shows a running demo, simulation or campaign: events line by line and, on a terminal, live bars below them.

Without a terminal it prints plain lines only, without control characters.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

MAX_WIDTH = 110
TIME_WIDTH = 7
FRAMES = 10  # per second
LINE_EVERY = 2.5  # seconds between two lines of counts, which replace the bars without a terminal


@dataclass(frozen=True, slots=True)
class CountRow:
    """Counts of a queue, or of another group of jobs."""

    name: str
    done: int
    running: int
    waiting: int

    @property
    def total(self) -> int:
        return self.done + self.running + self.waiting


@dataclass(frozen=True, slots=True)
class ShownProgress:
    """The progress of a single job."""

    label: str
    percent: float
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayState:
    heading: str
    counts: Sequence[CountRow]
    progress: Sequence[ShownProgress] = ()
    progress_rows: int = 0
    """Lines reserved for progress, so that the height does not change when a job ends."""
    facts: Sequence[Sequence[tuple[str, str]]] = ()
    """Lines of names and values below the rows."""
    notes: Sequence[str] = ()
    """Lines at the bottom."""


class Display(Protocol):
    """Where events and the current state are shown."""

    def event(self, words: str) -> None:
        """Prints a line with the time since the start. May contain rich's markup."""

    def print_lines(self, lines: Iterable[str]) -> None:
        """Prints lines without a time. May contain rich's markup."""

    def update(self, state: DisplayState) -> None:
        """Shows the current state."""

    def stop(self) -> None:
        """Stops updating; the last state stays on the screen."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def open_display(*, silent: bool = False) -> Display:
    console = Console(highlight=False)
    if silent:
        return SilentDisplay()
    if sys.stdout.isatty() and console.is_terminal and not console.is_dumb_terminal:
        return LiveDisplay(console)
    return PlainDisplay()


class SilentDisplay:
    """Shows nothing: with --json only the result is printed."""

    def event(self, words: str) -> None: ...
    def print_lines(self, lines: Iterable[str]) -> None: ...
    def update(self, state: DisplayState) -> None: ...
    def stop(self) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class PlainDisplay(SilentDisplay):
    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = self._began

    def event(self, words: str) -> None:
        click.echo(f"{_elapsed(self._began)}  {_plain(words)}")

    def print_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            click.echo(_plain(line).rstrip())

    def update(self, state: DisplayState) -> None:
        if time.monotonic() - self._shown < LINE_EVERY:
            return
        counts = ", ".join(f"{row.name} {row.done} of {row.total}" for row in state.counts if row.total)
        facts = ", ".join(f"{name} {value}" for line in state.facts for name, value in line)
        if counts or (facts and not state.counts):
            self._shown = time.monotonic()
            self.event(f"done: {counts}" if state.counts else facts)


class LiveDisplay(SilentDisplay):
    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._live = Live(console=console, refresh_per_second=FRAMES, transient=False)
        self._showing = False

    @property
    def _width(self) -> int:
        return min(self._console.width, MAX_WIDTH)

    def event(self, words: str) -> None:
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=TIME_WIDTH, justify="right", style="dim")
        line.add_column(width=self._width - TIME_WIDTH - 2)
        line.add_row(_elapsed(self._began).strip(), Text.from_markup(words))
        self._console.print(line)

    def print_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._console.print(Text.from_markup(line), soft_wrap=True)

    def update(self, state: DisplayState) -> None:
        if not self._showing:
            self._showing = True
            self._live.start()
        self._live.update(draw(state, self._width, plain=not self._console.encoding.startswith("utf")))

    def stop(self) -> None:
        if self._showing:
            self._showing = False
            self._live.stop()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _elapsed(began: float) -> str:
    return f"{time.monotonic() - began:{TIME_WIDTH - 2}.1f} s"


def _plain(markup: str) -> str:
    return Text.from_markup(markup).plain


# Drawing

GLYPHS = {"done": "━", "running": "━", "waiting": "─"}
PLAIN_GLYPHS = {"done": "#", "running": ">", "waiting": "-"}
STYLES = {"done": "green", "running": "yellow", "waiting": "dim"}


def draw(state: DisplayState, width: int, *, plain: bool = False) -> RenderableType:
    parts: list[RenderableType] = [Text(), _counts(state, width, plain=plain)]
    if state.progress_rows:
        parts += [Text(), _progress(state, width, plain=plain)]
    if state.facts:
        parts += [Text(), *(_facts(line) for line in state.facts)]
    parts += [Text(note, style="dim", overflow="ellipsis", no_wrap=True) for note in state.notes]
    return Group(*parts)


def _counts(state: DisplayState, width: int, *, plain: bool) -> Table:
    names = max(len(state.heading), *(len(row.name) for row in state.counts))
    bars = max(10, width - names - 35)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=names + 2)
    grid.add_column(width=bars)
    for _ in range(3):
        grid.add_column(width=7, justify="right")
    grid.add_row(*(Text(word, style="dim") for word in (f"  {state.heading}", "", "done", "running", "waiting")))
    for row in state.counts:
        parts = {"done": row.done, "running": row.running, "waiting": row.waiting}
        grid.add_row(f"  {row.name}", bar(parts, bars, plain=plain), *(_count(count) for count in parts.values()))
    return grid


def bar(parts: dict[str, int], width: int, *, plain: bool = False) -> Text:
    """Each part ends where the rounded sum ends, so the bar always has its full width."""
    total = sum(parts.values())
    text = Text()
    seen = drawn = 0
    for name, count in parts.items():
        seen += count
        end = round(width * seen / total) if total else 0
        text.append((PLAIN_GLYPHS if plain else GLYPHS)[name] * (end - drawn), STYLES[name])
        drawn = end
    return text


def _count(count: int) -> Text:
    return Text(f"{count:,}" if count else "-", style="" if count else "dim")


def _progress(state: DisplayState, width: int, *, plain: bool) -> Table:
    bars = max(10, (width - 30) // 3)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=22, no_wrap=True)
    grid.add_column(width=bars)
    grid.add_column(width=5, justify="right")
    grid.add_column(style="dim", no_wrap=True, overflow="ellipsis")
    for row in state.progress[: state.progress_rows]:
        done = round(row.percent)
        line = bar({"done": done, "waiting": 100 - done}, bars, plain=plain)
        grid.add_row(f"  {row.label}", line, f"{done} %", row.message)
    for _ in range(state.progress_rows - len(state.progress)):
        grid.add_row("", "", "", "")
    return grid


def _facts(line: Iterable[tuple[str, str]]) -> Text:
    text = Text("  ")
    for name, value in line:
        text.append(f"{name} ", "dim").append(value).append("   ")
    return text
