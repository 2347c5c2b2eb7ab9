"""Plays all schedules of some scripts, and finds the plainest that goes wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from tests.interleavings.interleaved_database import InterleavedDatabase
from tests.interleavings.judging import Judge, Violation
from tests.interleavings.orders import Known, orders
from tests.interleavings.playing import Play, Played
from tests.interleavings.start_states import START_STATES
from tests.interleavings.steps.caretaking import give_back
from tests.interleavings.steps.step import COMMIT, Script, Step
from tests.interleavings.world import TwoPlaces

COME_HOME: Script = (give_back(), COMMIT)


@dataclass(frozen=True)
class Wrong:
    names: Sequence[str]
    played: Played
    why: str

    @property
    def length(self) -> tuple[int, int, int]:
        """The fewer sessions, changes between them and waits, the easier it is to follow."""
        switches = sum(one.who != other.who for one, other in pairwise(self.played.steps))
        return len(self.names), switches, sum(bool(taken.waited_for) for taken in self.played.steps)


@dataclass
class Explored:
    schedules: int = 0
    """All orders of the steps."""
    played: int = 0
    """Without those that come to the same as one that was played, because somebody had to wait."""
    wrong: list[Wrong] = field(default_factory=list)


def explore(
    interleaved: InterleavedDatabase, start_state: str, scripts: Mapping[str, Script], *, until_wrong: bool = False
) -> Explored:
    """Scripts by name: one for each session."""
    _prepare(interleaved, start_state, scripts)
    found, known = Explored(), Known()
    for order in orders([len(script) for script in scripts.values()]):
        found.schedules += 1
        if known.covers(order):
            continue
        found.played += 1
        start = interleaved.restore(start_state)
        with interleaved.mended():
            played = Play(interleaved, list(scripts.values()), known).play(order)
        try:
            judge = Judge(start)
            judge.hear(played)
            judge.compare(interleaved.look())
            _come_home(interleaved, judge)
        except (Violation, TwoPlaces) as violation:
            found.wrong.append(Wrong(list(scripts), played, str(violation)))
            if until_wrong:
                break
    return found


def plainest(interleaved: InterleavedDatabase, start_state: str, scripts: Mapping[str, Script], found: Explored) -> Wrong:
    """Of what went wrong, with fewer scripts if fewer are enough."""
    for size in range(1, len(scripts)):
        for names in combinations(scripts, size):
            fewer = explore(interleaved, start_state, {name: scripts[name] for name in names})
            if fewer.wrong:
                return min(fewer.wrong, key=lambda wrong: wrong.length)
    return min(found.wrong, key=lambda wrong: wrong.length)


def _prepare(interleaved: InterleavedDatabase, start_state: str, scripts: Mapping[str, Script]) -> None:
    interleaved.keep(start_state, START_STATES[start_state])
    for session, script in zip(interleaved.sessions, scripts.values(), strict=False):
        session.prepare(["begin", "commit", "rollback", *(step.call.sql for step in script if isinstance(step, Step))])


def _come_home(interleaved: InterleavedDatabase, judge: Judge) -> None:
    """Once more, when all is over: nothing stays with a worker that is known to be dead."""
    if not any(worker.died for world in judge.worlds for worker in world.workers.values()):
        return
    interleaved.sessions[0].prepare(step.call.sql for step in COME_HOME if isinstance(step, Step))
    with interleaved.mended():
        played = Play(interleaved, [COME_HOME], Known()).play((0, 0))
    judge.hear(played)
    judge.compare(interleaved.look())
