"""The state of the database: the tables that matter, small enough to be compared whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from tests.interleavings.names import name_of


class Job(NamedTuple):
    place: str
    """`jobs` or `history`."""
    state: str
    claim: str | None = None
    worker: str | None = None
    """Of a live job: the worker whose claim names it."""
    fence: int = 0
    attempt: int = 0
    crashes: int = 0
    lease_until: int | None = None
    run_at: int | None = None
    key: str | None = None

    @property
    def live(self) -> bool:
        return self.place == "jobs"


class Claim(NamedTuple):
    """The row by which the jobs of a worker are found."""

    worker: str
    jobs: frozenset[str]


class Worker(NamedTuple):
    died: str | None
    expires: int


class Lease(NamedTuple):
    holder: str
    term: int
    expires: int


class Key(NamedTuple):
    job: str
    scope: str


@dataclass(frozen=True)
class World:
    clock: int
    """Seconds since the beginning."""
    jobs: dict[str, Job]
    claims: dict[str, Claim]
    workers: dict[str, Worker]
    leases: dict[str, Lease]
    keys: dict[str, Key]
    progress: dict[str, tuple[int, int]]
    """By job: the fence of the run that reported it, and the percent."""
    incidents: dict[str, int]
    """By job: how many."""
    counts: dict[str, int]
    """Of outcomes, by state."""
    effects: tuple[tuple[str, str], ...]
    """What handlers wrote in their own transactions: job and claim."""
    misgrouped: tuple[str, ...] = ()
    """Jobs that count towards a limit and do not run, or the other way round."""

    def at(self, clock: int) -> Self:
        return self if clock == self.clock else replace(self, clock=clock)

    def put(self, table: str, name: str, row: Any) -> Self:
        return replace(self, **{table: {**getattr(self, table), name: row}})

    def drop(self, table: str, name: str) -> Self:
        return replace(self, **{table: {key: row for key, row in getattr(self, table).items() if key != name}})

    def change(self, job: str, **values: Any) -> Self:
        return self.put("jobs", job, self.jobs[job]._replace(**values))

    def add(self, table: str, name: str, number: int = 1) -> Self:
        return self.put(table, name, getattr(self, table).get(name, 0) + number)

    def with_effect(self, job: str, claim: str) -> Self:
        return replace(self, effects=tuple(sorted([*self.effects, (job, claim)])))

    def claimed(self, name: str, claim: str, worker: str, lease_until: int | None = None) -> Self:
        """After this claim took the job, beside others that it took."""
        job = self.jobs[name]
        taken = self.change(
            name,
            state="running",
            claim=claim,
            worker=worker,
            fence=job.fence + 1,
            attempt=job.attempt + 1,
            lease_until=lease_until,
        )
        others = self.claims[claim].jobs if claim in self.claims else frozenset()
        return taken.put("claims", claim, Claim(worker, others | {name}))

    def held_under(self, claim: str) -> list[str]:
        return [name for name, job in self.jobs.items() if job.live and job.claim == claim]

    def claims_of(self, worker: str) -> list[str]:
        return [name for name, claim in self.claims.items() if claim.worker == worker]

    def held_by(self, worker: str) -> list[str]:
        return [name for name, job in self.jobs.items() if job.live and job.worker == worker]

    def owner_of(self, key: str) -> str | None:
        """The job that owns this key. A dead letter does not own a key that is for live jobs."""
        found = self.keys.get(key)
        if found is None:
            return None
        over = not self.is_live(found.job) or self.jobs[found.job].state == "dead_letter"
        return None if found.scope == "live" and over else found.job

    def is_live(self, job: str) -> bool:
        return job in self.jobs and self.jobs[job].live

    def differences(self, other: World) -> list[str]:
        """What differs in `other`, except for the clock."""
        found = []
        for table in ("jobs", "claims", "workers", "leases", "keys", "progress", "incidents", "counts"):
            mine, theirs = getattr(self, table), getattr(other, table)
            found += [
                f"{table} {name}: {_words(mine.get(name))}, not {_words(theirs.get(name))}"
                for name in sorted({*mine, *theirs})
                if _comparable(mine.get(name)) != _comparable(theirs.get(name)) and not self._left_over(table, name)
            ]
        if self.effects != other.effects:
            found.append(f"effects: {self.effects}, not {other.effects}")
        return found

    def _left_over(self, table: str, name: str) -> bool:
        """Incidents that were written while the job was being deleted stay until they are cleaned."""
        return table == "incidents" and name not in self.jobs


def _comparable(row: Any) -> Any:
    """Of a job whose claim had lost its row, history may name the worker that was made up for it, or none."""
    made_up = isinstance(row, Job) and not row.live and row.worker is not None and row.worker.startswith("C")
    return row._replace(worker=None) if made_up else row


class TwoPlaces(AssertionError):
    """A row exists twice."""


SNAPSHOT = """
    select json_build_object(
        'clock', injected.seconds(injected.clock_timestamp()),
        'jobs', (select json_agg(json_build_array(j.id, 'jobs', j.state, j.claim_id, h.worker_id, j.fence, j.attempt, j.crashes,
                     injected.seconds(j.lease_until), injected.seconds(j.run_at), j.key))
                   from tenure.jobs j left join tenure.held_jobs h on h.id = j.id),
        'misgrouped', (select json_agg(json_build_array(j.id)) from tenure.jobs j
                        where j.held_group is distinct from case when j.claim_id is not null then j.limit_group end),
        'claims', (select json_agg(json_build_array(c.id, c.worker_id, c.job_ids)) from tenure.claims c),
        'history', (select json_agg(json_build_array(h.id, 'history', h.state, h.claim_id, h.worker_id, h.fence, h.attempt,
                     h.crashes, null, null, h.key)) from tenure.history h),
        'workers', (select json_agg(json_build_array(w.id, w.died_how, injected.seconds(w.expires_at))) from tenure.workers w),
        'leases', (select json_agg(json_build_array(l.name, l.holder, l.term, injected.seconds(l.expires_at)))
                     from tenure.leases l),
        'keys', (select json_agg(json_build_array(k.key, k.job_id, k.scope)) from tenure.keys k),
        'progress', (select json_agg(json_build_array(p.job_id, p.fence, p.percent)) from tenure.progress p),
        'incidents', (select json_agg(json_build_array(n.job_id, n.count))
                        from (select job_id, count(*) from tenure.incidents group by job_id) n),
        'counts', (select json_agg(json_build_array(t.what, t.sum))
                     from (select a.what, sum(a.jobs)
                             from (select what, jobs from tenure.tallies union all select what, jobs from tenure.counters) a
                            where a.what not in ('enqueued', 'started')
                            group by a.what) t),
        'effects', (select json_agg(json_build_array(e.job_id, e.claim_id)) from injected.effects e))::text
"""


def read(text: str) -> World:
    found: dict[str, Any] = json.loads(text)
    tables: dict[str, list[list[Any]]] = {table: rows or [] for table, rows in found.items() if table != "clock"}
    names = {table: [[_named(value) for value in row] for row in rows] for table, rows in tables.items()}
    return World(
        clock=found["clock"],
        jobs=_by_name([(row[0], Job(*row[1:])) for row in [*names["jobs"], *names["history"]]]),
        claims=_by_name([(row[0], Claim(*row[1:])) for row in names["claims"]]),
        workers=_by_name([(row[0], Worker(*row[1:])) for row in names["workers"]]),
        leases=_by_name([(row[0], Lease(*row[1:])) for row in names["leases"]]),
        keys=_by_name([(row[0], Key(*row[1:])) for row in names["keys"]]),
        progress=_by_name([(row[0], (row[1], row[2])) for row in names["progress"]]),
        incidents=dict(names["incidents"]),
        counts=dict(names["counts"]),
        effects=tuple(sorted((job, claim) for job, claim in names["effects"])),
        misgrouped=tuple(sorted(job for (job,) in names["misgrouped"])),
    )


def _named(value: Any) -> Any:
    if isinstance(value, list):
        return frozenset(map(name_of, value))
    return name_of(value) if isinstance(value, str) else value


def _by_name(rows: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(rows)
    if len(made) < len(rows):
        twice = sorted({name for name, _ in rows if [other for other, _ in rows].count(name) > 1})
        raise TwoPlaces(f"{', '.join(twice)} exists twice: {rows}")
    return made


def _words(row: Any) -> str:
    if row is None:
        return "nothing"
    if not hasattr(row, "_asdict"):
        return str(row)
    return "(" + ", ".join(f"{name}={value}" for name, value in row._asdict().items() if value not in (None, 0)) + ")"
