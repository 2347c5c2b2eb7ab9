"""Judges a schedule: the answers that the sessions got and the contents of the database must be the same as if the
transactions had run one after another, in the order of their commits.

- If a statement reported a change, that change must have been possible after the commits before its own.
- If a statement that never skips rows did not make a change, that change must have been impossible while it ran.
- A statement that ran while no other session had a transaction open must have made every possible change.
- A statement that was refused or rolled back changed nothing: whole tables are compared.
- No job is held by a worker that has no row, or under a claim that does not list it; the jobs of condemned workers are pending
  after they were requeued once more.
- A job counts towards its limits while it is held, and not otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations

from tests.interleavings.playing import Played, Taken
from tests.interleavings.steps.step import Change, End, Step, Wait, Words
from tests.interleavings.world import World


class Violation(AssertionError):
    """The text names the rule that was broken."""


class Judge:
    def __init__(self, start: World) -> None:
        self._worlds = [[start]]
        """After each event: the possible worlds. There are several if the answers leave some changes open."""
        self._open: dict[int, list[tuple[Taken, list[World]]]] = {}
        """By session: the statements of its transaction, and the worlds in which they ran."""

    @property
    def worlds(self) -> list[World]:
        return self._worlds[-1]

    def add(self, played: Played) -> None:
        for event in played.events:
            self._worlds.append(self._after(event))

    def compare(self, found: World) -> None:
        """Compares the database with what the answers imply."""
        lost = [name for name, job in found.jobs.items() if job.live and job.claim and job.worker is None]
        if lost:
            raise Violation(f"{', '.join(lost)} held under a claim that is gone: {found.jobs[lost[0]]}")
        if found.misgrouped:
            raise Violation(f"{', '.join(found.misgrouped)} held, and not counted towards its limit, or the other way round")
        orphans = [name for name, job in found.jobs.items() if job.live and job.worker and job.worker not in found.workers]
        if orphans:
            raise Violation(f"{', '.join(orphans)} held by a worker that is gone: {found.jobs[orphans[0]]}")
        done_twice = [job for job, times in Counter(job for job, _ in found.effects).items() if times > 1]
        if done_twice:
            raise Violation(f"{done_twice[0]} was done twice: {found.effects}")
        differences = [found.differences(world) for world in self.worlds]
        if all(differences):
            raise Violation(
                "the database differs from the answers that the sessions got:\n  " + "\n  ".join(min(differences, key=len))
            )

    def _after(self, event: Taken) -> list[World]:
        if isinstance(event.step, Step):
            self._statement(event, event.step)
            return self.worlds
        if isinstance(event.step, Wait):
            return [world.at(world.clock + event.step.seconds) for world in self.worlds]
        return self._end(event, event.step)

    def _statement(self, event: Taken, step: Step) -> None:
        answer = event.answer or ()
        self._check(event, step, answer)
        window = list({id(world): world for worlds in self._worlds[event.began :] for world in worlds}.values())
        if not any(_never_skips(step.changes(world)) <= Counter(answer) for world in window):
            raise Violation(f"“{step.label}” answered {_spelled(answer)}, but could do {_possible(step, window)}")
        if event.alone and not any(Counter(_words(step.changes(world))) == Counter(answer) for world in window):
            raise Violation(f"“{step.label}” ran alone and answered {_spelled(answer)}, but could do {_possible(step, window)}")
        self._open.setdefault(event.who, []).append((event, window))

    def _check(self, event: Taken, step: Step, answer: Words) -> None:
        if faults := [word for word in answer if word.startswith("error")]:
            raise Violation(f"“{step.label}”: {faults[0]}")
        for steps in event.waited_for.values():
            if not any(step.waits & other.locks for other in steps):
                raise Violation(f"“{step.label}” must not wait for “{', '.join(other.label for other in steps)}”")

    def _end(self, event: Taken, step: End) -> list[World]:
        done = self._open.pop(event.who, [])
        if event.answer == ("rolled back",):
            return self.worlds
        if event.answer != ("committed",):
            raise Violation(f"“{step.label}”: {_spelled(event.answer or ())}")
        worlds = self.worlds
        for taken, window in done:
            assert isinstance(taken.step, Step)
            after = [later for world in worlds for later in _explain(taken, taken.step, world, window)]
            if not after:
                possible = _possible(taken.step, worlds)
                raise Violation(
                    f"“{taken.step.label}” answered {_spelled(taken.answer or ())}, but at its commit could do {possible}"
                )
            worlds = _different(after)
        return worlds


def _explain(taken: Taken, step: Step, world: World, window: list[World]) -> Iterator[World]:
    """The possible worlds after a statement with this answer."""
    for clock in {seen.clock for seen in window}:
        now = step.changes(world.at(clock))
        then = [change for seen in window for change in step.changes(seen)]
        loose = {change.word: change for change in then if not change.firm}
        spoken = [change for change in now if change.firm and change.word is not None] + list(loose.values())
        # A statement that ran alone has made every change that was possible when it ran; later changes do not count.
        silent = [change for change in (step.changes(window[-1]) if taken.alone else now) if change.word is None]
        for chosen in _choices(spoken, silent, taken.answer or (), whole=taken.alone):
            after = _apply(chosen, world.at(clock))
            if after is not None:
                yield after.at(world.clock)


def _choices(spoken: list[Change], silent: list[Change], answer: Words, *, whole: bool) -> Iterator[list[Change]]:
    """The changes that give this answer, with any of the silent ones, or with all of them if `whole`."""
    hidden = (
        [tuple(silent)] if whole else list(chain.from_iterable(combinations(silent, size) for size in range(len(silent) + 1)))
    )
    for chosen in combinations(spoken, len(answer)):
        if sorted(_words(chosen)) == sorted(answer):
            for more in hidden:
                yield [*chosen, *more]


def _apply(changes: list[Change], world: World) -> World | None:
    for change in changes:
        after = change.then(world)
        if after is None:
            return None
        world = after
    return world


def _never_skips(changes: list[Change]) -> Counter[str]:
    return Counter(change.word for change in changes if change.word is not None and not change.skips)


def _words(changes: Sequence[Change]) -> list[str]:
    return [change.word for change in changes if change.word is not None]


def _different(worlds: list[World]) -> list[World]:
    kept: list[World] = []
    for world in worlds:
        if world not in kept:
            kept.append(world)
    return kept


def _spelled(answer: Words) -> str:
    return ", ".join(answer) or "nothing"


def _possible(step: Step, worlds: list[World]) -> str:
    return " | ".join(dict.fromkeys(_spelled(tuple(_words(step.changes(world)))) for world in worlds))
