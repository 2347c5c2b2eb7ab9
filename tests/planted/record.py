"""The results of published hunts, and the page that shows them.

A hunt of all bugs takes hours, so each published run hunts some of them. `hunted.json` keeps the last result of each bug; the
page lists all bugs by group, and shows how many of them were hunted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from tenure.chaos import summary
from tenure.chaos.summary import table
from tests.planted.bugs import BUGS, ROOMS
from tests.planted.catching import Catch
from tests.planted.planting import ROOT

FILE = Path(__file__).parent / "hunted.json"
PAGE = ROOT / "docs" / "operations" / "reliability.md"


class LastHunt(NamedTuple):
    caught: bool
    seconds: float


def read() -> dict[str, LastHunt]:
    """The last result of each bug that was hunted in a published run. Bugs that were removed or renamed since are left out."""
    kept = json.loads(FILE.read_text("utf-8"))
    return {bug.name: LastHunt(**kept[bug.name]) for bug in BUGS if bug.name in kept}


def add(catches: Iterable[Catch]) -> None:
    results = read() | {catch.name: LastHunt(catch.caught, round(catch.seconds)) for catch in catches}
    lines = [f" {json.dumps(name)}: {json.dumps(results[name]._asdict())}" for name in sorted(results)]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def publish(where: Path = PAGE) -> None:
    """Writes the block of the page."""
    summary.publish(where, "planted", block())


def block() -> str:
    """The block of the page."""
    results = read()
    survived = [name for name, last in results.items() if not last.caught]
    score = (
        f"Published runs have hunted {len(results)} of them: {len(results) - len(survived)} were caught, {len(survived)} survived"
    )
    others = len(BUGS) - len(results)
    rest = (f"The other {others} have no published result. " if others else "") + (
        "`make test` checks that each of them can be planted and that its tests exist; `make proof` hunts a sample."
    )
    hunted = [
        (f"`{bug.name}`", bug.breaks, f"{results[bug.name].seconds:.0f} s" if results[bug.name].caught else "SURVIVED")
        for bug in sorted(BUGS, key=lambda bug: bug.name)
        if bug.name in results
    ]
    groups = table(("Group", "bugs", "hunted", "caught"), [_group(room, results) for room in ROOMS])
    lines = table(("Bug", "what it breaks", "caught after"), hunted)
    return "\n".join([f"**There are {len(BUGS)} bugs. {score}.**", rest, "", *groups, "", *lines])


def _group(room: ModuleType, results: dict[str, LastHunt]) -> tuple[str, str, str, str]:
    names = [bug.name for bug in room.BUGS]
    hunted = [results[name] for name in names if name in results]
    about = str(room.__doc__).strip().rstrip(".").removeprefix("Bugs in ")
    return (about, str(len(names)), str(len(hunted)), str(sum(last.caught for last in hunted)))
