"""What people see while something runs: a story, line by line, and beneath it, on a terminal, bars that move.

Without a terminal there are plain lines only, and no control characters.
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

WIDEST = 110
TIME_WIDTH = 7
FRAMES = 10  # a second
LINE_EVERY = 2.5  # seconds between two lines that stand for the bars


@dataclass(frozen=True, slots=True)
class Row:
    """A queue, or whatever else jobs are counted by."""

    name: str
    done: int
    running: int
    waiting: int

    @property
    def total(self) -> int:
        return self.done + self.running + self.waiting


@dataclass(frozen=True, slots=True)
class Track:
    """A single job that tells how far it is."""

    label: str
    percent: float
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    heading: str
    rows: Sequence[Row]
    tracks: Sequence[Track] = ()
    room: int = 0
    """Lines kept free for tracks, so that nothing jumps when one ends."""
    facts: Sequence[Sequence[tuple[str, str]]] = ()
    """Lines of names and values."""
    notes: Sequence[str] = ()
    """Lines beneath it all."""


class Stage(Protocol):
    """Where the story is told."""

    def say(self, words: str) -> None:
        """A line of the story, with the time it happened at. May hold rich's markup."""

    def quote(self, lines: Iterable[str]) -> None:
        """Lines as they are, without a time. May hold rich's markup."""

    def show(self, scene: Scene) -> None:
        """How things stand."""

    def freeze(self) -> None:
        """What was shown last stays, and nothing moves any more."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def open_stage(*, silent: bool = False) -> Stage:
    console = Console(highlight=False)
    if silent:
        return SilentStage()
    if sys.stdout.isatty() and console.is_terminal and not console.is_dumb_terminal:
        return LiveStage(console)
    return PlainStage()


class SilentStage:
    """For programs that read the end only."""

    def say(self, words: str) -> None: ...
    def quote(self, lines: Iterable[str]) -> None: ...
    def show(self, scene: Scene) -> None: ...
    def freeze(self) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class PlainStage(SilentStage):
    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = self._began

    def say(self, words: str) -> None:
        click.echo(f"{_elapsed(self._began)}  {_plain(words)}")

    def quote(self, lines: Iterable[str]) -> None:
        for line in lines:
            click.echo(_plain(line).rstrip())

    def show(self, scene: Scene) -> None:
        if time.monotonic() - self._shown < LINE_EVERY:
            return
        counts = ", ".join(f"{row.name} {row.done} of {row.total}" for row in scene.rows if row.total)
        facts = ", ".join(f"{name} {value}" for line in scene.facts for name, value in line)
        if counts or (facts and not scene.rows):
            self._shown = time.monotonic()
            self.say(f"done so far: {counts}" if scene.rows else facts)


class LiveStage(SilentStage):
    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._live = Live(console=console, refresh_per_second=FRAMES, transient=False)
        self._scene: Scene | None = None
        self._showing = False

    @property
    def _width(self) -> int:
        return min(self._console.width, WIDEST)

    def say(self, words: str) -> None:
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=TIME_WIDTH, justify="right", style="dim")
        line.add_column(width=self._width - TIME_WIDTH - 2)
        line.add_row(_elapsed(self._began).strip(), Text.from_markup(words))
        self._console.print(line)

    def quote(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._console.print(Text.from_markup(line), soft_wrap=True)

    def show(self, scene: Scene) -> None:
        if not self._showing:
            self._showing = True
            self._live.start()
        self._scene = scene
        self._live.update(draw(scene, self._width, plain=not self._console.encoding.startswith("utf")))

    def freeze(self) -> None:
        if self._showing:
            self._showing = False
            self._live.stop()

    def __exit__(self, *_: object) -> None:
        self.freeze()


def _elapsed(began: float) -> str:
    return f"{time.monotonic() - began:{TIME_WIDTH - 2}.1f} s"


def _plain(markup: str) -> str:
    return Text.from_markup(markup).plain


# Drawing

GLYPHS = {"done": "━", "running": "━", "waiting": "─"}
PLAIN_GLYPHS = {"done": "#", "running": ">", "waiting": "-"}
STYLES = {"done": "green", "running": "yellow", "waiting": "dim"}


def draw(scene: Scene, width: int, *, plain: bool = False) -> RenderableType:
    parts: list[RenderableType] = [Text(), _rows(scene, width, plain=plain)]
    if scene.room:
        parts += [Text(), _tracks(scene, width, plain=plain)]
    if scene.facts:
        parts += [Text(), *(_facts(line) for line in scene.facts)]
    parts += [Text(note, style="dim", overflow="ellipsis", no_wrap=True) for note in scene.notes]
    return Group(*parts)


def _rows(scene: Scene, width: int, *, plain: bool) -> Table:
    names = max(len(scene.heading), *(len(row.name) for row in scene.rows))
    bars = max(10, width - names - 35)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=names + 2)
    grid.add_column(width=bars)
    for _ in range(3):
        grid.add_column(width=7, justify="right")
    grid.add_row(*(Text(word, style="dim") for word in (f"  {scene.heading}", "", "done", "running", "waiting")))
    for row in scene.rows:
        parts = {"done": row.done, "running": row.running, "waiting": row.waiting}
        grid.add_row(f"  {row.name}", bar(parts, bars, plain=plain), *(_count(count) for count in parts.values()))
    return grid


def bar(parts: dict[str, int], width: int, *, plain: bool = False) -> Text:
    """Parts of a whole, none of them lost to rounding at its end."""
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


def _tracks(scene: Scene, width: int, *, plain: bool) -> Table:
    bars = max(10, (width - 30) // 3)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=22, no_wrap=True)
    grid.add_column(width=bars)
    grid.add_column(width=5, justify="right")
    grid.add_column(style="dim", no_wrap=True, overflow="ellipsis")
    for track in scene.tracks[: scene.room]:
        done = round(track.percent)
        line = bar({"done": done, "waiting": 100 - done}, bars, plain=plain)
        grid.add_row(f"  {track.label}", line, f"{done} %", track.message)
    for _ in range(scene.room - len(scene.tracks)):
        grid.add_row("", "", "", "")
    return grid


def _facts(line: Iterable[tuple[str, str]]) -> Text:
    text = Text("  ")
    for name, value in line:
        text.append(f"{name} ", "dim").append(value).append("   ")
    return text
