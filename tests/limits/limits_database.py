"""The statements of limits on a connection of the test's own, and an observer that no claim can deceive."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from tenure.store import limits
from tenure.store.claims import HeldJob
from tenure.store.jobs import FinishedRuns
from tenure.store.query import Query, array_literal
from tests.store.database import COLUMNS, Database, finished

# In the claiming (or settling) transaction, when it has written: all others that write have ended, or have not written yet.
# So what it counts, in a snapshot that is younger than the lock, is what every session would see if it committed now.
OBSERVER = """
    create schema if not exists observer;
    create table observer.seen (look bigint not null, kind text, queue text, tenant text, jobs int);
    create sequence observer.looks;
    create table observer.starts (job uuid, at timestamptz, kind text, tenant text, limit_group text, durable text);
    create function observer.look() returns trigger language plpgsql as $$
    declare
        this bigint := nextval('observer.looks');
    begin
        perform pg_advisory_xact_lock(4711);
        insert into observer.seen (look, kind, queue, tenant, jobs)
        select this, j.kind, j.queue, j.input ->> 'tenant_id', count(*)
          from tenure.jobs j where j.claim_id is not null group by 2, 3, 4;
        insert into observer.starts
        select n.id, c.at, n.kind, n.input ->> 'tenant_id', n.limit_group, current_setting('synchronous_commit')
          from later n join earlier o on o.id = n.id left join tenure.claims c on c.id = n.claim_id
         where n.claim_id is not null and o.claim_id is null;
        return null;
    end $$;
    create trigger observer after update on tenure.jobs referencing old table as earlier new table as later
        for each statement execute function observer.look();
"""
BLIND = "drop trigger if exists observer on tenure.jobs; drop schema if exists observer cascade"


@dataclass
class Taken:
    jobs: list[dict[str, Any]]
    told: dict[str, Any] = field(default_factory=dict)
    claim_id: str = ""

    @property
    def ids(self) -> list[str]:
        return [job["id"] for job in self.jobs]

    @property
    def tenants(self) -> list[str]:
        return [json.loads(job["input"]).get("tenant_id") for job in self.jobs]

    @property
    def held(self) -> list[HeldJob]:
        return [HeldJob(job_id, self.claim_id) for job_id in self.ids]

    def outcomes(self, **more: Any) -> str:
        return json.dumps([{"id": job_id, "claim_id": self.claim_id, **more} for job_id in self.ids])

    def finished(self, *ids: str) -> FinishedRuns:
        return finished([(job_id, self.claim_id) for job_id in ids or self.ids])


class LimitsDatabase(Database):
    def limit(self, name: str, **rules: Any) -> None:
        """As code declares it."""
        self.run(limits.declare({name: rules}))

    def rules(self) -> dict[str, dict[str, Any]]:
        return {row[0]: json.loads(row[1]) for row in self.run(limits.find())}

    def many(self, count: int, *, kind: str = "work", **more: Any) -> list[str]:
        """Jobs that differ in nothing."""
        return self.enqueue(*[{"kind": kind, **more}] * count)

    def of(self, tenant: str | None, count: int = 1, **more: Any) -> list[str]:
        return self.many(count, input={} if tenant is None else {"tenant_id": tenant}, **more)

    def take(
        self,
        worker: str,
        *,
        limit: int = 10,
        queues: Sequence[str] = ("default",),
        kinds: Sequence[str] = ("work", "other"),
        capabilities: Sequence[str] = (),
        which: str = "all",
        after: str = "",
        now: datetime | None = None,
        steps: int = 100,
    ) -> Taken:
        """Lock and claim, as a worker does."""
        with self.connection.transaction():
            locked = self.lock(queues=queues, kinds=kinds)
            if not locked:
                return Taken([])
            return self.take_locked(
                worker,
                locked,
                limit=limit,
                queues=queues,
                kinds=kinds,
                capabilities=capabilities,
                which=which,
                after=after,
                now=now,
                steps=steps,
            )

    def lock(self, *, queues: Iterable[str] = ("default",), kinds: Iterable[str] = ("work", "other")) -> list[str]:
        names = [*(f"kind:{kind}" for kind in kinds), *(f"queue:{queue}" for queue in queues)]
        return [name for name, had in self.run(limits.lock(names, queues)) if had]

    def take_locked(self, worker: str, locked: list[str] | None, *, limit: int = 10, **given: Any) -> Taken:
        claim_id = str(uuid4())
        query = limited_claim_query(worker, claim_id, locked, limit=limit, **given)
        rows = self.run(query)
        found = [dict(zip(COLUMNS, row[1:], strict=True)) for row in rows if row[1] is not None]
        return Taken(found, json.loads(rows[0][0]), claim_id)

    def limit_groups(self) -> Counter[str | None]:
        return Counter(row[0] for row in self.sql("select limit_group from tenure.jobs"))

    def observe(self) -> None:
        self.connection.execute(BLIND.encode(), prepare=False)
        self.connection.execute(OBSERVER.encode(), prepare=False)

    def blind(self) -> None:
        self.connection.execute(BLIND.encode(), prepare=False)

    def most_seen(self, by: str = "kind") -> dict[str | None, int]:
        """How many ran at once at most."""
        return dict(
            self.sql(
                f"""select name, max(jobs)::integer
                      from (select {by} as name, look, sum(jobs) as jobs from observer.seen group by 1, 2) s group by 1"""
            )
        )


def limited_claim_query(worker: str, claim_id: str, locked: list[str] | None, *, limit: int = 10, **given: Any) -> Query:
    return limits.claim(
        worker_id=worker,
        claim_id=claim_id,
        locked=locked,
        queues=json.dumps([{"queue": queue, "after": given.get("after", "")} for queue in given.get("queues", ("default",))]),
        steps=given.get("steps", 100),
        limit=limit,
        kinds=array_literal(list(given.get("kinds", ("work", "other")))),
        capabilities=array_literal(list(given.get("capabilities", ()))),
        leases="{}",
        which=given.get("which", "all"),
        now=given.get("now"),
    )
