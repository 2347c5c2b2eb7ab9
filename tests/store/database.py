"""The product's statements on a connection of the test's own, so that two of them can be interleaved by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row

from tenure.model.claimed_job import ClaimedJob
from tenure.store import jobs, leases, workers
from tenure.store.claim_replies import ClaimReply
from tenure.store.columns import column_names, has_rows
from tenure.store.jobs import ClaimRow, FinishedRuns
from tenure.store.json_columns import json_readers
from tenure.store.leases import Term
from tenure.store.query import Query, T, array_literal
from tenure.store.statements import statement
from tenure.store.workers import Registration

COLUMNS = ClaimedJob._fields


@dataclass(frozen=True)
class Claim:
    id: str
    worker_id: str
    reply: ClaimReply
    jobs: list[dict[str, Any]]

    @property
    def ids(self) -> list[str]:
        return [job["id"] for job in self.jobs]

    def outcomes(self, **more: Any) -> str:
        """What a settling statement takes, for every job of this claim."""
        return json.dumps([{"id": job_id, "claim_id": self.id, **more} for job_id in self.ids])

    def finished(self, *ids: str, **more: Any) -> FinishedRuns:
        """The same for the statement that finishes jobs."""
        return finished([(job_id, self.id) for job_id in ids or self.ids], **more)


def finished(
    runs: Iterable[tuple[str, str]], output: Any = None, state: str | None = None, error: str | None = None
) -> FinishedRuns:
    """These jobs, under these claims, with one outcome."""
    runs = list(runs)
    return FinishedRuns(
        array_literal([job_id for job_id, _ in runs]),
        array_literal(sorted({claim_id for _, claim_id in runs})),
        json.dumps({job_id: [claim_id, output, state, error] for job_id, claim_id in runs}),
    )


def connect(dsn: str, **settings: str) -> psycopg.Connection[Any]:
    settings = {"statement_timeout": "20s", **settings}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return psycopg.connect(dsn, autocommit=True, options=options, prepare_threshold=None)


class Database:
    def __init__(
        self, dsn: str, *, schema: str = "tenure", connection: psycopg.Connection[Any] | None = None, **settings: str
    ) -> None:
        """On this connection, which stays open, or on one of its own."""
        self.connection = connection or connect(dsn, **settings)
        self.schema = schema
        self._is_own = connection is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_own:
            self.connection.close()

    def fetch(self, query: Query[T]) -> list[T]:
        """As a link does."""
        cursor = self.connection.execute(statement(query.name, self.schema), query.values)
        return query.decode(cursor.fetchall() if has_rows(cursor) else [], lambda: column_names(cursor))

    def run(self, query: Query[Any]) -> list[tuple[Any, ...]]:
        """The rows as plain tuples."""
        cursor = self.connection.execute(statement(query.name, self.schema), query.values)
        return cursor.fetchall() if cursor.description else []

    def sql(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(text, values or None)
        return cursor.fetchall() if cursor.description else []

    def worker(self, *, ttl: float = 600.0, supervisor: str | None = None, queues: Sequence[str] = ("default",)) -> str:
        worker_id = str(uuid4())
        registration = Registration(
            id=worker_id,
            supervisor_id=supervisor or str(uuid4()),
            host="here",
            pid=1,
            queues=queues,
            kinds=["work"],
            capabilities=[],
            concurrency=10,
            version="0",
        )
        self.run(workers.register(registration, ttl))
        return worker_id

    def enqueue(self, *given: Mapping[str, Any], **more: Any) -> list[str]:
        """With the function `tenure.enqueue`; the kind is `work` by default."""
        text = json.dumps([{"kind": "work", **job, **more} for job in given])
        return [str(row[0]) for row in self.sql("select id from tenure.enqueue(%s)", text)]

    def claim(
        self,
        worker_id: str,
        *,
        limit: int = 10,
        queues: Iterable[str] = ("default",),
        lanes: list[dict[str, Any]] | None = None,
        kinds: Sequence[str] = ("work",),
        capabilities: Sequence[str] = (),
        leases: Mapping[str, float] | None = None,
        which: str = "all",
    ) -> Claim:
        claim_id = str(uuid4())
        query = claim_query(
            worker_id,
            claim_id,
            lanes=[everything(queue) for queue in queues] if lanes is None else lanes,
            limit=limit,
            kinds=kinds,
            capabilities=capabilities,
            leases=leases,
            which=which,
        )
        rows = self.run(query)
        found = [dict(zip(COLUMNS, row[1:], strict=True)) for row in rows if row[1] is not None]
        return Claim(claim_id, worker_id, reply_from_row(rows[0]), found)

    def condemn(self, worker_id: str, how: str = "crashed") -> None:
        self.sql("update tenure.workers set died_at = clock_timestamp(), died_how = %s where id = %s", how, worker_id)

    def return_jobs(self, worker_id: str | None = None) -> tuple[Any, ...]:
        return self.run(jobs.return_jobs(worker_id))[0]

    def term(self, duty: str, holder: str | None = None, ttl: float = 600.0) -> Term:
        """Wins the duty, or fails."""
        holder = holder or str(uuid4())
        [(won, _)] = self.run(leases.acquire(holder, [(duty, ttl)]))
        return Term(duty, holder, json.loads(won)[duty], ttl)

    def end_term(self, duty: str) -> None:
        self.sql("update tenure.leases set expires_at = clock_timestamp() where name = %s", duty)

    def job(self, job_id: str) -> dict[str, Any]:
        with self.connection.cursor(row_factory=dict_row) as cursor:
            [found] = cursor.execute("select * from tenure.all_jobs where id = %s", [job_id]).fetchall()
        return found


def reply_from_row(row: tuple[Any, ...]) -> ClaimReply:
    """From the first row of a claim, as the driver returns it."""
    reply = json_readers(ClaimRow)["reply"](row[0])
    assert isinstance(reply, ClaimReply)
    return reply


def claim_query(
    worker_id: str,
    claim_id: str,
    *,
    lanes: list[dict[str, Any]],
    limit: int = 10,
    kinds: Sequence[str] = ("work",),
    capabilities: Sequence[str] = (),
    leases: Mapping[str, float] | None = None,
    which: str = "all",
) -> Query[ClaimRow]:
    return jobs.claim(
        worker_id=worker_id,
        claim_id=claim_id,
        lanes=json.dumps([{"ordinal": ordinal, **lane} for ordinal, lane in enumerate(lanes)]),
        limit=limit,
        kinds=array_literal(list(kinds)),
        capabilities=array_literal(list(capabilities)),
        leases=json.dumps(dict(leases or {})),
        which=which,
    )


def everything(queue: str = "default") -> dict[str, Any]:
    return {"queue": queue, "high": 100, "low": 0, "start": 0}
