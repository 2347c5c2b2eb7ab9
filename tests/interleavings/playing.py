"""Plays one schedule: takes the steps in the given order, and continues with other sessions while a statement waits
for a lock."""

from __future__ import annotations

import select
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.interleavings.interleaved_database import InterleavedDatabase
from tests.interleavings.orders import Known, Order, next_turn
from tests.interleavings.sessions import Call, Reply, Session
from tests.interleavings.steps.step import AnyStep, End, Script, Step, Wait, Words

BEGIN, COMMIT, ROLLBACK = Call("begin"), Call("commit"), Call("rollback")
GLANCE = 0.0005  # seconds until we ask whether a statement waits for a lock
LONGEST = 20.0  # seconds that anything may take


@dataclass
class Taken:
    """A step that was taken, with its answer and what it waited for."""

    who: int
    step: AnyStep
    began: int
    """How many events were over when it began."""
    alone: bool
    """No other session had a transaction open."""
    answer: Words | None = None
    resent: bool = False
    waited_for: dict[int, list[Step]] = field(default_factory=dict)
    """The sessions that it waited for, and their statements."""


@dataclass
class Played:
    events: list[Taken]
    """In the order in which they were over."""
    steps: list[Taken]
    """In the order in which they began."""


class Actor:
    def __init__(self, who: int, session: Session, script: Script) -> None:
        self.who = who
        self.session = session
        self._steps = list(script)
        self.open = False
        self.broken = False
        self.done: list[Taken] = []
        """The statements of the transaction that is open."""
        self.busy: Taken | None = None

    def next_step(self) -> AnyStep:
        return self._steps.pop(0)

    def awaits(self, others: Iterable[Actor]) -> bool:
        """Its next step repeats one that is still to be sent."""
        step = self._steps[0] if self._steps else None
        if not isinstance(step, Step) or step.repeats is None:
            return False
        return any(isinstance(other, Step) and other.label == step.repeats for actor in others for other in actor._steps)

    def send(self, taken: Taken) -> bool:
        """Whether there is something to wait for: nothing is sent in a transaction that has failed."""
        step = taken.step
        if isinstance(step, Step):
            if self.broken or (step.if_previous_changed and not self.done[-1].answer):
                return False
            self.session.send(*([] if self.open else [BEGIN]), step.call)
            self.open = True
        else:
            assert isinstance(step, End)
            self.session.send(COMMIT if self._commits(step) else ROLLBACK)
        self.busy = taken
        return True

    def receive(self) -> Taken | None:
        """None: the statement was sent once more."""
        taken, self.busy = self.busy, None
        assert taken is not None
        reply = self.session.take()[-1]
        if self._resends(taken, reply):
            taken.resent = True
            self.session.send(taken.step.call)
            self.busy = taken
            return None
        if isinstance(taken.step, Step):
            taken.answer = taken.step.answer(reply)
            self.broken = reply.fault is not None
            self.done.append(taken)
        else:
            assert isinstance(taken.step, End)
            taken.answer = (f"error {reply.fault}: {reply.words}",) if reply.fault else self._ended(taken.step)
            self.open = self.broken = False
            self.done = []
        return taken

    def _resends(self, taken: Taken, reply: Reply) -> bool:
        step = taken.step
        return (
            isinstance(step, Step)
            and step.resend_if_empty
            and not taken.resent
            and reply.fault is None
            and not step.answer(reply)
        )

    def statements(self) -> list[Step]:
        """Of its open transaction."""
        steps = [taken.step for taken in self.done] + ([self.busy.step] if self.busy else [])
        return [step for step in steps if isinstance(step, Step)]

    def _ended(self, step: End) -> Words:
        return ("committed",) if self._commits(step) else ("rolled back",)

    def _commits(self, step: End) -> bool:
        return step.commits and not self.broken and not (step.if_previous_changed and not self.done[-1].answer)


class Play:
    def __init__(self, interleaved: InterleavedDatabase, scripts: Sequence[Script], known: Known) -> None:
        self._interleaved = interleaved
        self._known = known
        self._actors = [Actor(who, interleaved.sessions[who], script) for who, script in enumerate(scripts)]
        self._by_pid = {actor.session.pid: actor for actor in self._actors}
        self._held_up: dict[int, set[int]] = {}
        """By actor: the actors that it waits for."""
        self._events: list[Taken] = []
        self._steps: list[Taken] = []

    def play(self, order: Order) -> Played:
        waiting, taken = list(order), ()
        self._known.learn(taken, self._not_now())
        while waiting:
            place = next_turn(waiting, self._not_now())
            assert place is not None, f"no session can continue after {taken}: {self._held_up}"
            who = waiting.pop(place)
            self._take(self._actors[who])
            self._untangle()
            taken = (*taken, who)
            self._known.learn(taken, self._not_now())
        assert not self._held_up, f"{self._held_up} after the last step"
        return Played(self._events, self._steps)

    def _not_now(self) -> frozenset[int]:
        return frozenset(self._held_up) | {actor.who for actor in self._actors if actor.awaits(self._actors)}

    def _take(self, actor: Actor) -> None:
        alone = not any(other.open for other in self._actors if other is not actor)
        taken = Taken(actor.who, actor.next_step(), len(self._events), alone)
        self._steps.append(taken)
        if isinstance(taken.step, Wait):
            self._interleaved.pass_time(taken.step.seconds)
            taken.answer = ()
            self._events.append(taken)
        elif actor.send(taken):
            self._settle([actor])
        else:
            taken.answer = ("not sent: the transaction has failed, or the statement before changed nothing",)

    def _settle(self, going: list[Actor]) -> None:
        """Waits until each of them has its answer or waits for a lock. The end of a transaction lets others continue."""
        deadline = time.monotonic() + LONGEST
        while going:
            assert time.monotonic() < deadline, f"no answer: {[actor.busy for actor in going]}"
            select.select([actor.session.socket for actor in going], [], [], GLANCE)
            answered = [actor for actor in going if actor.session.answered()]
            for actor in answered:
                going.remove(actor)
                going += self._receive(actor)
            if not answered:
                for actor in self._find_waiting(going):
                    going.remove(actor)

    def _receive(self, actor: Actor) -> list[Actor]:
        """Returns the actors that may continue now."""
        taken = actor.receive()
        if taken is None:
            return [actor]
        self._events.append(taken)
        if isinstance(taken.step, Step) and not actor.broken:
            return []
        freed = [self._actors[who] for who in self._held_up]
        self._held_up.clear()
        return freed

    def _find_waiting(self, going: list[Actor]) -> list[Actor]:
        """Returns the actors that wait for a lock of another actor."""
        blockers = self._interleaved.blockers(actor.session for actor in going)
        held_up = [actor for actor in going if blockers[actor.session.pid] & self._by_pid.keys()]
        for actor in held_up:
            others = [self._by_pid[pid] for pid in blockers[actor.session.pid] & self._by_pid.keys()]
            self._held_up[actor.who] = {other.who for other in others}
            assert actor.busy is not None
            actor.busy.waited_for |= {other.who: other.statements() for other in others}
        return held_up

    def _untangle(self) -> None:
        """Actors that wait for each other continue when PostgreSQL has aborted one of them."""
        while circle := [who for who in self._held_up if self._waits_for(who, who, set())]:
            going = [self._actors[who] for who in circle]
            select.select([actor.session.socket for actor in going], [], [], LONGEST)
            for who in circle:
                del self._held_up[who]
            self._settle(going)

    def _waits_for(self, who: int, whom: int, seen: set[int]) -> bool:
        others = self._held_up.get(who, set()) - seen
        return whom in others or any(self._waits_for(other, whom, seen | others) for other in others)
