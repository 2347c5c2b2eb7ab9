"""Jobs are enqueued: now or later, with keys, by runs, and once more when the answer was lost."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import product
from typing import Any

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tenure.store import jobs
from tests.properties.model import Call, ParentLost
from tests.properties.rules.base import PICK, QUEUES, move
from tests.properties.rules.passing import TimeRules

PARENT_LOST = "P0T01"

Drawn = tuple[str, str, int | None, str | None, int | None, float | None, str]

# One draw for all of it: draws cost more than statements do.
JOB = st.sampled_from(
    list(
        product(
            ("plain", "plain", "leased", "rare"),
            (QUEUES[0], *QUEUES),  # most jobs meet in one queue
            (None, None, 50, 75, 100, 0),  # priority
            (None, None, None, "gpu"),
            (None, 1, 2),  # max_attempts
            (None, None, None, 0.0, 1.0, 5.0),  # delay
            ("{}", '{"n": 1}', '{"key": "claim"}'),
        )
    )
)
KEY = st.sampled_from(("k", "k", "l"))
KEY_FOR = st.sampled_from(("live", "live", "forever", "5", "5", None))


class EnteringRules(TimeRules):
    @initialize(drawn=st.lists(JOB, min_size=3, max_size=8))
    def stock(self, drawn: list[Drawn]) -> None:
        self.enqueue(drawn)

    @move(5, drawn=st.lists(JOB, min_size=1, max_size=3))
    def enqueue(self, drawn: list[Drawn]) -> None:
        self.enqueue_calls(tuple(self.call(job) for job in drawn))

    @move(6, drawn=JOB, key=KEY, key_for=KEY_FOR, twice=st.booleans())
    def enqueue_with_a_key(self, drawn: Drawn, key: str, key_for: str | None, twice: bool) -> None:
        """Twice: two jobs of one call want the same key."""
        self.enqueue_calls(tuple(self.call(drawn, key=key, key_for=key_for) for _ in range(1 + twice)))

    @move(3, drawn=JOB, early=st.booleans())
    def enqueue_when_a_key_is_free(self, drawn: Drawn, early: bool) -> None:
        """When its window ends, or a second before."""
        now, keys = self.model.now, self.model.books.keys.values()
        windows = [key for key in keys if key.expires_at is not None and now + 1 < key.expires_at < now + 60]
        for key in windows[-1:]:
            self.time_passes((key.expires_at or 0) - now - early, renewing=True)
            self.enqueue_calls((self.call((key.kind, *drawn[1:]), key=key.key, key_for="5"),))

    @move(2, drawn=JOB, pick=PICK, stale=st.booleans())
    def enqueue_a_child(self, drawn: Drawn, pick: int, stale: bool) -> None:
        run = self.some_run(pick, stale=stale)
        more = {"parent": run.job_id, "claim": run.claim_id} if run else {}
        self.enqueue_calls((self.call(drawn, **more),))

    @move(1, drawn=st.lists(JOB, min_size=1, max_size=2))
    def enqueue_again_what_never_arrived(self, drawn: list[Drawn]) -> None:
        self.enqueue_calls(tuple(self.call(job) for job in drawn), again=True)

    @move(2, pick=PICK)
    def enqueue_again(self, pick: int) -> None:
        self.enqueue_calls(self.calls[-1 - pick % min(len(self.calls), 12)], again=True)

    @move(2, drawn=JOB, key=KEY, key_for=KEY_FOR, commit=st.booleans())
    def race_for_a_key(self, drawn: Drawn, key: str, key_for: str | None, commit: bool) -> None:
        """The second waits for the first, and creates no job if that was committed."""
        first, second = (self.call(drawn, key=key, key_for=key_for) for _ in range(2))
        answers = self._enqueue_both(first, second, again=False, commit=commit)
        expected = self.model.enqueue([first]) if commit else self._rolled_back(first)
        self.agree(answers, (expected, self.model.enqueue([second])), "two calls with one key")

    @move(1, drawn=JOB, commit=st.booleans())
    def enqueue_again_too_early(self, drawn: Drawn, commit: bool) -> None:
        """The call that is repeated is still under way."""
        call = self.call(drawn)
        answers = self._enqueue_both(call, call, again=True, commit=commit)
        expected = self.model.enqueue([call]) if commit else self._rolled_back(call)
        if commit and not call.delay:
            self.model.books.position += 1  # taken before the first call was visible, and not used by any job
        self.agree(answers, (expected, self.model.enqueue([call], again=True)), "one call, twice at once")

    def _enqueue_both(self, first: Call, second: Call, *, again: bool, commit: bool) -> tuple[object, object]:
        self.look()
        self.asked = "jobs/enqueue_jobs"
        self.calls += [(first,), (second,)]
        return self.store.run_both(
            jobs.enqueue(json.dumps([first.to_json()])),
            jobs.enqueue(json.dumps([second.to_json()]), again=again),
            commit=commit,
        )

    def _rolled_back(self, call: Call) -> object:
        """No row of it stays, but its position is not used again."""
        kept = deepcopy(self.model.books)
        told = self.model.enqueue([call])
        kept.position, self.model.books = self.model.books.position, kept
        return told

    def call(self, drawn: Drawn, **more: Any) -> Call:
        kind, queue, priority, capability, max_attempts, delay, given = drawn
        return Call(
            id=self.new_id(),
            kind=kind,
            queue=queue,
            priority=priority,
            capability=capability,
            max_attempts=max_attempts,
            delay=delay,
            input=given,
            **more,
        )

    def enqueue_calls(self, calls: tuple[Call, ...], *, again: bool = False) -> None:
        if calls not in self.calls:
            self.calls.append(calls)
        query = jobs.enqueue(json.dumps([call.to_json() for call in calls]), again=again)
        answer: object
        try:
            answer = sorted(self.run(query))
        except psycopg.Error as error:
            answer = error.sqlstate
        try:
            self.agree(answer, self.model.enqueue(calls, again=again), "jobs that own the keys")
        except ParentLost:
            self.agree(answer, PARENT_LOST, "a lost run enqueues a job")
