"""People cancel, retry, replay and delete jobs, and pause queues."""

from __future__ import annotations

from uuid import UUID

from hypothesis import strategies as st

from tenure.store import jobs, queues
from tests.properties.model.deciding import CANCELED
from tests.properties.rules.base import PICK, QUEUES, move
from tests.properties.rules.running import RunningRules

HOW_MANY = st.integers(1, 3)
STATES = st.sampled_from((None, None, ("pending", "running"), ("scheduled", "retry", "dead_letter")))


class DecidingRules(RunningRules):
    @move(4, pick=PICK, most=HOW_MANY, states=STATES)
    def cancel(self, pick: int, most: int, states: tuple[str, ...] | None) -> None:
        if ids := self.some_ids(pick, most):
            rows = self.run(jobs.cancel(map(UUID, ids), states=states, error=CANCELED))
            self.agree(_sorted(rows), self.model.cancel(ids, states), "canceled")

    @move(5, pick=PICK, state=st.sampled_from((None, "dead_letter", "retry", "scheduled")))
    def retry(self, pick: int, state: str | None) -> None:
        for job_id in self.some_ids(pick, state=state):
            self.agree(_plain(self.run(jobs.retry(UUID(job_id), "me"))), self.model.retry(job_id), "retried")

    @move(2, pick=PICK, state=st.sampled_from(("completed", "failed", "canceled")))
    def retry_what_is_over(self, pick: int, state: str) -> None:
        for job_id in self.some_ids(pick, state=state):
            new_id = self.new_id()
            rows = self.run(jobs.retry_finished(UUID(job_id), UUID(new_id), "me"))
            self.agree(_plain(rows), self.model.retry_finished(job_id, new_id), "created again")

    @move(
        5,
        pick=PICK,
        most=HOW_MANY,
        new_input=st.sampled_from((None, None, '{"n": 2}')),
        priority=st.sampled_from((None, None, 75)),
    )
    def replay(self, pick: int, most: int, new_input: str | None, priority: int | None) -> None:
        if not any(job.state == "dead_letter" for job in self.model.books.live.values()):
            self.settle(pick, ("fatal", "fatal"))
        if ids := self.some_ids(pick, most, "dead_letter"):
            rows = self.run(jobs.replay(map(UUID, ids), input=new_input, priority=priority, by="me"))
            self.agree(_sorted(rows), self.model.replay(ids, new_input, priority), "replayed")

    @move(4, pick=PICK, most=HOW_MANY, force=st.booleans())
    def delete(self, pick: int, most: int, force: bool) -> None:
        if ids := self.some_ids(pick, most):
            rows = self.run(jobs.delete(map(UUID, ids), force=force))
            self.agree(_sorted(rows), self.model.delete(ids, force=force), "deleted")

    @move(2, queue=st.sampled_from(QUEUES))
    def pause(self, queue: str) -> None:
        self.run(queues.pause(queue, "for now", "me"))
        self.model.pause(queue)

    @move(3, queue=st.sampled_from(QUEUES))
    def resume(self, queue: str) -> None:
        self.agree(self.run(queues.resume(queue)), self.model.resume(queue), "resumed")


def _sorted(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(_plain(rows), key=lambda row: str(row[0]))


def _plain(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [tuple(str(value) if isinstance(value, UUID) else value for value in row) for row in rows]
