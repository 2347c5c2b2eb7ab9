"""Plays all schedules of some scripts, and finds the simplest one that fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from tests.interleavings.interleaved_database import InterleavedDatabase
from tests.interleavings.judging import Judge, Violation
from tests.interleavings.orders import Known, orders
from tests.interleavings.playing import Play, Played
from tests.interleavings.start_states import START_STATES
from tests.interleavings.steps.caretaking import return_jobs
from tests.interleavings.steps.step import COMMIT, Script, Step
from tests.interleavings.world import TwoPlaces

FINAL_RETURN: Script = (return_jobs(), COMMIT)


@dataclass(frozen=True)
class Wrong:
    names: Sequence[str]
    played: Played
    why: str

    @property
    def length(self) -> tuple[int, int, int]:
        """A schedule with fewer sessions, switches between them and waits is easier to follow."""
        switches = sum(one.who != other.who for one, other in pairwise(self.played.steps))
        return len(self.names), switches, sum(bool(taken.waited_for) for taken in self.played.steps)


@dataclass
class Explored:
    schedules: int = 0
    """All orders of the steps."""
    played: int = 0
    """Without orders that are equivalent to one already played, because a session had to wait for a lock."""
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
        with interleaved.reconnecting_after_errors():
            played = Play(interleaved, list(scripts.values()), known).play(order)
        try:
            judge = Judge(start)
            judge.add(played)
            judge.compare(interleaved.look())
            _return_finally(interleaved, judge)
        except (Violation, TwoPlaces) as violation:
            found.wrong.append(Wrong(list(scripts), played, str(violation)))
            if until_wrong:
                break
    return found


def simplest(interleaved: InterleavedDatabase, start_state: str, scripts: Mapping[str, Script], found: Explored) -> Wrong:
    """The simplest failing schedule, with fewer scripts if fewer are enough to fail."""
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


def _return_finally(interleaved: InterleavedDatabase, judge: Judge) -> None:
    """Requeues once more after the last step: no job may stay with a condemned worker."""
    if not any(worker.died for world in judge.worlds for worker in world.workers.values()):
        return
    interleaved.sessions[0].prepare(step.call.sql for step in FINAL_RETURN if isinstance(step, Step))
    with interleaved.reconnecting_after_errors():
        played = Play(interleaved, [FINAL_RETURN], Known()).play((0, 0))
    judge.add(played)
    judge.compare(interleaved.look())
