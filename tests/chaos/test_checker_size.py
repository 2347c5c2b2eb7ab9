from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from uuid import UUID

from tenure.chaos.checker import check
from tenure.chaos.ledger import ClientCall, JobRequest, Ledger, as_line
from tests.chaos.builder import BEGAN, TICK, LedgerBuilder, Row, final_of

AT_ONCE = 20  # requests of one call
BACKLOG = 200
WORKERS = 4
UNLUCKY = 20  # of this many jobs, one is requeued and run again


class Campaign:
    """A correct campaign of any size, written line by line: jobs are run in order."""

    def __init__(self, ledger: Ledger, files: ExitStack) -> None:
        self._calls, self._moves, self._final, *self._runs = (
            files.enter_context(ledger.write(name))
            for name in ("calls-0.jsonl", "moves.jsonl.gz", "final.jsonl.gz", *(f"runs-{n}.jsonl" for n in range(WORKERS)))
        )
        self._seq = count(1)
        self._waiting: deque[LedgerBuilder] = deque()

    def run(self, jobs: int) -> None:
        for first in range(1, jobs + 1, AT_ONCE):
            self._enqueue(range(first, min(first + AT_ONCE, jobs + 1)), BEGAN + first * 2 * TICK)
            while len(self._waiting) > BACKLOG:
                self._work(BEGAN + first * 2 * TICK)
        while self._waiting:
            self._work(BEGAN + jobs * 2 * TICK)

    def _enqueue(self, numbers: range, at: float) -> None:
        ids = tuple(str(UUID(int=n << 96 | n)) for n in numbers)
        requests = tuple(JobRequest(n, "quick", None) for n in numbers)
        self._calls.write(as_line(ClientCall("enqueue", at, at + TICK, "ok", requests, ids, (False,) * len(ids))))
        for n, job in zip(numbers, ids, strict=True):
            life = LedgerBuilder(now=at)
            life.insert(job, n, position=n)
            self._note(life)
            self._waiting.append(life)

    def _work(self, at: float) -> None:
        life = self._waiting.popleft()
        life.now = at
        [row] = life.rows.values()
        if row.n % UNLUCKY == 0:
            self._begin(life, row)
            life.run("aborted", row)
            life.requeue(row)
        self._begin(life, row)
        life.complete(row)
        self._note(life)
        self._final.write(as_line(final_of(row)))

    def _begin(self, life: LedgerBuilder, row: Row) -> None:
        life.claim(row, f"w{row.n % WORKERS}", claim=str(UUID(int=row.n << 96 | row.fence)))
        life.start(row)

    def _note(self, life: LedgerBuilder) -> None:
        for move in life.moves:
            self._moves.write(as_line(move._replace(seq=next(self._seq))))
        for run in life.runs:
            self._runs[run.n % WORKERS].write(as_line(run))
        life.moves.clear()


def write_campaign(folder: Path, jobs: int) -> Ledger:
    ledger = Ledger(folder)
    ledger.write_campaign(LedgerBuilder().campaign)
    with ExitStack() as files:
        Campaign(ledger, files).run(jobs)
    return ledger


def test_a_campaign_of_some_size_is_judged_to_the_last_line(tmp_path):
    verdict = check(write_campaign(tmp_path, 2_000))
    assert verdict.ok, verdict.as_text()
    assert (verdict.counts.jobs, verdict.counts.moves, verdict.counts.runs) == (2_000, 2_000 * 4 + 100 * 2, 2_000 * 2 + 100 * 2)
