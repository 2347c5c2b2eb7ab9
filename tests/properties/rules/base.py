"""What all rules stand on: a store and a model, compared after every step."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, TypeVar
from uuid import UUID, uuid5

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tenure.store import leases, workers
from tenure.store.leases import Term
from tenure.store.query import Query
from tenure.store.workers import Registration
from tenure.worker.claim.cursors import Cursors
from tests.properties.clock import BEGIN
from tests.properties.laws import Laws
from tests.properties.model import Call, Model, Outcome, Profile, Run
from tests.properties.picture import differences, from_books
from tests.properties.store_database import StoreDatabase

QUEUES = ("mail", "maps")
KINDS = ("plain", "leased", "rare")
LEASES = (("leased", 4.0),)

PROFILES = (
    Profile(queues=QUEUES, kinds=KINDS, capabilities=("gpu",), leases=LEASES),
    Profile(queues=QUEUES[::-1], kinds=KINDS, leases=LEASES),
    Profile(queues=QUEUES[:1], kinds=KINDS[:2], which="healthy"),
    Profile(queues=QUEUES, kinds=KINDS, which="suspects", leases=LEASES),
)

WORKER_TTL = 10.0
DUTIES = {"stager": 10.0, "reaper": 10.0, "cleaner": 60.0}

REPLACED = 6
SEAT = st.integers(0, REPLACED)
PICK = st.integers(0, 999)
"""Chooses among what there is at that moment: cheaper than a new strategy for each step."""

F = TypeVar("F", bound=Callable[..., None])
Move = tuple[str, dict[str, Any]]


def move(weight: int, **drawn: st.SearchStrategy[Any]) -> Callable[[F], F]:
    """A rule with a weight. Hypothesis gives all rules the same, and leaves most of them out of each example: then hardly
    any job is enqueued, promoted, claimed, returned and settled in one life."""

    def marked(function: F) -> F:
        function.move = (weight, drawn)
        return function

    return marked


@st.composite
def next_move(draw: st.DrawFn) -> Move:
    machine = draw(st.runner())
    pick = draw(PICK)
    names = machine.favourites if machine.favourites and pick % 3 == 0 else machine.names
    name = names[pick // 3 % len(names)]
    return name, {argument: draw(strategy) for argument, strategy in machine.moves[name].items()}


@dataclass(slots=True)
class Seat:
    """A worker as it sees itself: it continues to claim and settle after it was condemned."""

    id: str
    supervisor_id: str
    profile: Profile
    cursors: Cursors
    owed: set[str] = field(default_factory=set)
    """Claims whose answer was lost."""


class StoreMachine(RuleBasedStateMachine):
    moves: ClassVar[dict[str, dict[str, st.SearchStrategy[Any]]]] = {}
    """What may be done, and what is drawn for it."""
    names: ClassVar[list[str]] = []
    """Each as often as it weighs."""

    def __init_subclass__(cls) -> None:
        found = [(name, value.move) for name, value in inspect.getmembers(cls) if hasattr(value, "move")]
        cls.moves = {name: drawn for name, (_, drawn) in found}
        cls.names = [name for name, (weight, _) in found for _ in range(weight)]

    def __init__(self, store: StoreDatabase) -> None:
        super().__init__()
        self.store = store
        self.model = Model(BEGIN)
        self.laws = Laws()
        self.favourites: list[str] = []
        self.failed = False
        self.asked: str | None = None
        """The statement that was run since the last look."""
        self._numbers = count()
        self.runs: list[Run] = []
        """Every run there ever was."""
        self.calls: list[tuple[Call, ...]] = []
        self.settlements: list[tuple[Outcome, ...]] = []
        self.terms: dict[str, list[Term]] = {duty: [] for duty in DUTIES}
        """Every term that was ever won."""
        self.holders = [self.new_id() for _ in range(2)]
        store.begin(BEGIN)
        self.before = store.picture()
        self.replaced: list[Seat] = []
        self.seats = [self.enter(profile) for profile in PROFILES[:3]]

    def new_id(self) -> str:
        """The same in every repetition, and in no order: nothing may rely on ids that rise."""
        return str(uuid5(UUID(int=0), str(next(self._numbers))))

    @initialize(picks=st.lists(PICK, max_size=4))
    def choose_favourites(self, picks: list[int]) -> None:
        """What this life is full of: rare things that follow on each other are met that way."""
        names = sorted(self.moves)
        self.favourites = [names[pick % len(names)] for pick in picks]

    @rule(move=next_move())
    def do(self, move: Move) -> None:
        name, drawn = move
        getattr(self, name)(**drawn)

    # Asking, and comparing. A rule asks the store first and the model then, so that both are equal before the next rule.

    def run(self, query: Query) -> list[tuple[Any, ...]]:
        """A statement that may write."""
        self.look()
        self.asked = query.name
        return self.store.run(query)

    def agree(self, answer: object, expected: object, what: str) -> None:
        if answer != expected:
            self.fail(f"{what}\n  answer       {answer}\n  should be    {expected}")

    def fail(self, words: str) -> None:
        self.failed = True
        trail = "\n".join(f"  {line}" for line in self.store.trail)
        raise AssertionError(f"{words}\nat {self.model.now - BEGIN:g} s, after:\n{trail}")

    def look(self) -> None:
        """After every statement: does the store agree with the model, and was the move a legal one?"""
        if self.asked is None:
            return
        stands, expected = self.store.picture(), from_books(self.model.books)
        if stands != expected:
            self.fail(differences(stands, expected))
        try:
            self.laws.check(self.before, stands, deleting=self.asked == "jobs/delete_jobs")
        except AssertionError as error:
            self.fail(str(error))
        self.before, self.asked = stands, None

    @invariant()
    def the_store_agrees_with_the_model(self) -> None:
        if self.asked is not None:
            self.store.steps += 1
        self.look()

    def teardown(self) -> None:
        """What only ever grows is compared once, at the end."""
        if self.failed:
            return
        noted = self.store.sql("select job_id::text, what, attempt, fence, worker_id::text from tenure.incidents")
        self.agree(Counter(noted), Counter(self.model.books.incidents), "incidents")
        counted = self.store.sql(
            """select t.queue, t.kind, t.what, sum(t.jobs)::integer
                 from (select queue, kind, what, jobs from tenure.tallies
                       union all select queue, kind, what, jobs from tenure.counters) t
                where t.what not in ('enqueued', 'started')
                group by t.queue, t.kind, t.what"""
        )
        self.agree({row[:3]: row[3] for row in counted}, self.model.books.settled, "tallies")

    # Choosing workers, jobs and terms

    def enter(self, profile: Profile) -> Seat:
        """A new process begins."""
        seat = Seat(self.new_id(), self.new_id(), profile, Cursors(profile.queues))
        seat.cursors._next_full_sweep = float("inf")  # the other ways of finding jobs must suffice
        registration = Registration(
            id=seat.id,
            supervisor_id=seat.supervisor_id,
            host="here",
            pid=1,
            queues=profile.queues,
            kinds=profile.kinds,
            capabilities=profile.capabilities,
            concurrency=10,
            version="0",
        )
        self.run(workers.register(registration, WORKER_TTL))
        self.model.register(seat.id, seat.supervisor_id, profile, WORKER_TTL)
        return seat

    def seat(self, number: int) -> Seat:
        """One of the current workers; sometimes one that was replaced."""
        return self.replaced[-1] if number == REPLACED and self.replaced else self.seats[number % len(self.seats)]

    def some_ids(self, pick: int, most: int = 1, state: str | None = None) -> list[str]:
        """Jobs: live ones, or finished, or (one time in eight) any that there ever was."""
        books = self.model.books
        if pick % 8 == 0:
            ids = [call.id for calls in self.calls for call in calls]
        elif state is not None:
            ids = [job.id for job in (*books.live.values(), *books.finished.values()) if job.state == state]
        else:
            ids = list(books.live if pick % 8 < 6 else books.finished)
        return list(dict.fromkeys(some(ids, pick // 8, most)))

    def term(self, duty: str) -> Term:
        """The right to do a duty now, won if need be."""
        last = self.terms[duty][-1] if self.terms[duty] else None
        if last is None or not self.model.leads(last):
            self.acquire_duties(self.holders[0], [duty])
        return self.terms[duty][-1]

    def acquire_duties(self, holder: str, duties: list[str]) -> None:
        wanted = [(duty, DUTIES[duty]) for duty in duties]
        [(told, next_free)] = self.run(leases.acquire(holder, wanted))
        won = self.model.acquire(holder, wanted)
        self.agree(json.loads(told), won, "duties won")
        others = [self.model.books.leases[duty].expires_at - self.model.now for duty in duties if duty not in won]
        self.agree(next_free, min(others, default=None), "the next duty to become free")
        for duty, number in won.items():
            self.terms[duty].append(Term(duty, holder, number, DUTIES[duty]))


def some(things: list[Any], pick: int, most: int = 1) -> list[Any]:
    if not things:
        return []
    start = pick % len(things)
    return (things[start:] + things[:start])[:most]
