"""Workers that live and die, and the duties that one leader at a time may do."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from tenure.model.states import State
from tenure.store.leases import Term
from tests.properties.model.moving import Moving
from tests.properties.model.rows import MAX_CRASHES, Claim, Job, Lease, Profile, Worker

INCIDENTS = {"stopped": "requeued", "expired": "lease_lost", "crashed": "crashed"}


@dataclass(frozen=True, slots=True)
class Returned:
    pending: int
    quarantined: int
    told: int


class Caretaking(Moving):
    # Workers

    def register(self, worker_id: str, supervisor_id: str, profile: Profile, ttl: float) -> None:
        self.books.workers.setdefault(worker_id, Worker(worker_id, supervisor_id, profile, self.now, self.now + ttl))

    def renew(self, ids: Collection[str], queues: Collection[str], ttl: float) -> tuple[list[str], bool]:
        """Gives those renewed, and whether jobs wait that must run alone. Late is not dead: only a condemned one is refused."""
        renewed = [worker for i in ids if (worker := self.books.workers.get(i)) and worker.died_at is None]
        for worker in renewed:
            worker.heartbeat_at, worker.expires_at = self.now, self.now + ttl
        suspects = (job for job in self.books.live.values() if job.state == State.PENDING and job.crashes >= 2)
        return sorted(worker.id for worker in renewed), any(job.queue in queues for job in suspects)

    def condemn(self, worker_id: str, supervisor_id: str, how: str) -> None:
        worker = self.books.workers.get(worker_id)
        if worker is not None and worker.supervisor_id == supervisor_id and worker.died_at is None:
            worker.died_at, worker.died_how = self.now, how

    def late_workers(self) -> list[Worker]:
        """Their lease has expired, and they are not condemned yet."""
        return [w for w in self.books.workers.values() if w.died_at is None and w.expires_at <= self.now]

    def condemned(self, worker_id: str | None) -> list[Worker]:
        return [w for w in self.books.workers.values() if w.died_at is not None and worker_id in (None, w.id)]

    def left_behind(self, worker_id: str | None) -> list[str]:
        """Jobs that condemned workers still hold."""
        dead = {worker.id for worker in self.condemned(worker_id)}
        return sorted(job.id for job in self.books.live.values() if job.worker_id in dead)

    def return_jobs(self, worker_id: str | None, ids: Collection[str]) -> Returned:
        """Requeues these jobs; workers that hold nothing any more are removed."""
        dead = {worker.id: worker for worker in self.condemned(worker_id)}
        jobs = [self.books.live[i] for i in ids]
        queues = {job.queue for job in jobs} | {queue for worker in dead.values() for queue in worker.profile.queues}
        for job in jobs:
            how = dead[job.worker_id or ""].died_how or ""
            self._lost(job, INCIDENTS[how], blame="its worker died {} times while running it" if how != "stopped" else None)
        self.tell(queues)
        for worker in dead.values():
            self.forget_claims(worker.id)
            if not any(claim.worker_id == worker.id for claim in self.books.claims.values()):
                del self.books.workers[worker.id]
        return _returned(jobs, queues)

    def _lost(self, job: Job, what: str, *, blame: str | None) -> None:
        """A crash uses no attempt, but it is counted; the third one dead-letters the job."""
        self.note(job, what, held=True)
        job.attempt = max(job.attempt - 1, 0)
        if blame is not None:
            job.crashes += 1
        quarantined = blame is not None and job.crashes >= MAX_CRASHES
        if quarantined and blame is not None:
            job.error = "quarantined: " + blame.format(job.crashes)
            self.count(job, State.DEAD_LETTER)
        self.move(job, State.DEAD_LETTER if quarantined else State.PENDING)
        self.let_go(job)

    # Leases of duties

    def acquire(self, holder: str, duties: Iterable[tuple[str, float]]) -> dict[str, int]:
        """Gives the duties that are the holder's now, with their terms."""
        won = {}
        for name, ttl in duties:
            old = self.books.leases.get(name)
            if old is None or old.expires_at <= self.now:
                won[name] = 1 if old is None else old.term + 1
                self.books.leases[name] = Lease(name, holder, won[name], self.now, self.now, self.now + ttl)
            elif old.holder == holder:
                won[name] = old.term
                if old.expires_at < self.now + ttl / 2:
                    old.heartbeat_at, old.expires_at = self.now, self.now + ttl
        return won

    def release(self, holder: str, terms: Iterable[Term]) -> None:
        for term in terms:
            if self.leads(replace(term, holder=holder)):
                self.books.leases[term.duty].expires_at = self.now

    def leads(self, term: Term) -> bool:
        lease = self.books.leases.get(term.duty)
        return lease is not None and (lease.holder, lease.term) == (term.holder, term.term) and lease.expires_at > self.now

    def beat(self, holder: str, terms: Iterable[Term]) -> list[str]:
        """Gives the duties renewed."""
        renewed = [term for term in terms if self.leads(replace(term, holder=holder))]
        for term in renewed:
            lease = self.books.leases[term.duty]
            lease.heartbeat_at, lease.expires_at = self.now, self.now + term.ttl
        return sorted(term.duty for term in renewed)

    # Duties

    def due(self) -> list[Job]:
        found = [job for job in self.books.live.values() if job.waits and job.run_at is not None and job.run_at <= self.now]
        return sorted(found, key=lambda job: (job.run_at, job.id))

    def next_due(self) -> float | None:
        """In how many seconds the next job is due that is not due yet."""
        later = [job.run_at - self.now for job in self.books.live.values() if job.waits and (job.run_at or 0) > self.now]
        return min(later, default=None)

    def promote(self, term: Term, limit: int) -> tuple[bool, int, int]:
        """Gives whether the term holds, how many were promoted, and of how many queues."""
        if not self.leads(term):
            return False, 0, 0
        due = self.due()[:limit]
        for job in due:
            self.move(job, State.PENDING)
            self.to_the_end(job)
        return True, len(due), len({job.queue for job in due})

    def condemn_expired(self, term: Term, *, reap: bool) -> tuple[bool, int]:
        """Gives whether the term holds, and how many were condemned."""
        if not self.leads(term):
            return False, 0
        late = self.late_workers() if reap else []
        for worker in late:
            worker.died_at, worker.died_how = self.now, "expired"
        return True, len(late)

    def remove_row(self, worker_id: str) -> None:
        """A person does that, or a restored dump."""
        self.books.workers.pop(worker_id, None)

    def remove_claim(self, claim_id: str) -> None:
        self.books.claims.pop(claim_id, None)
        for job in self.books.live.values():
            if job.claim_id == claim_id:
                job.worker_id, job.started_at = None, job.earlier_start

    def condemn_unknown(self, term: Term) -> tuple[bool, list[str]]:
        """Gives whether the term holds, and the workers that hold jobs and had no row. Where a claim has none, it gets one, of a
        worker with its name."""
        if not self.leads(term):
            return False, []
        for claim_id in {job.claim_id for job in self.books.live.values() if job.claim_id is not None} - self.books.claims.keys():
            held = [job for job in self.books.live.values() if job.claim_id == claim_id]
            self.books.claims[claim_id] = Claim(claim_id, claim_id, self.now, tuple(sorted(job.id for job in held)))
            for job in held:
                job.worker_id, job.started_at = claim_id, self.now
        unknown = sorted({claim.worker_id for claim in self.books.claims.values()} - self.books.workers.keys())
        for worker_id in unknown:
            serves_nothing = Profile(queues=(), kinds=())
            self.books.workers[worker_id] = Worker(worker_id, worker_id, serves_nothing, self.now, self.now, self.now, "expired")
        return True, unknown

    def overdue(self) -> list[Job]:
        """Jobs whose own lease ran out."""
        found = [job for job in self.books.live.values() if job.lease_until is not None and job.lease_until <= self.now]
        return sorted(found, key=lambda job: job.lease_until or 0)

    def expire_jobs(self, term: Term, limit: int) -> Returned:
        """Checked by the term, which this does not renew."""
        late = self.overdue()[:limit] if self.leads(term) else []
        for job in late:
            self._lost(job, "lease_lost", blame="it let its lease run out {} times")
        queues = {job.queue for job in late}
        self.tell(queues)
        return _returned(late, queues)

    def clean_keys(self, term: Term) -> tuple[bool, int, int]:
        """Gives whether the term holds, and how many keys went whose window was over, and whose job is not live any more."""
        if not self.leads(term):
            return False, 0, 0
        idle = [key for key in self.books.keys.values() if key.job_id not in self.books.live]
        over = [key for key in idle if key.expires_at is not None and key.expires_at <= self.now]
        freed = [key for key in idle if key.scope == "live"]
        for key in over + freed:
            del self.books.keys[key.kind, key.key]
        return True, len(over), len(freed)


def _returned(jobs: Collection[Job], queues: Collection[str]) -> Returned:
    dead = sum(job.state == State.DEAD_LETTER for job in jobs)
    return Returned(len(jobs) - dead, dead, len(queues))
