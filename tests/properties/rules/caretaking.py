"""Workers die and are emptied; leaders are elected, do their duties, and are deposed."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from hypothesis import strategies as st

from tenure.store import cleaning, jobs, leases, workers
from tenure.store.leases import LeaseHeartbeat, Term
from tenure.store.workers import MAX_CRASHES
from tests.properties.model import Outcome
from tests.properties.picture import COLUMN
from tests.properties.rules.base import DUTIES, PICK, SEAT, WORKER_TTL, Seat, move
from tests.properties.rules.passing import TimeRules
from tests.properties.rules.running import finished

DEATHS = st.sampled_from(("crashed", "crashed", "stopped"))
HOLDER = st.integers(0, 1)
DUTY = st.sampled_from(sorted(DUTIES))
LIMITS = st.sampled_from((1, 2, 500))


class PromotingRules(TimeRules):
    @move(6)
    def promote(self) -> None:
        self.wait_for_due_jobs()
        self.promote_under(self.term("stager"), 500)

    def wait_for_due_jobs(self) -> None:
        if not self.model.due():
            self.time_passes(self.model.next_due() or 0.0, renewing=True)

    def promote_under(self, term: Term, limit: int) -> None:
        limit = _up_to_a_gap([job.run_at for job in self.model.due()], limit)
        rows = self.run(jobs.promote(term, limit=limit))
        answers = [(holds, promoted, len(queues), next_due) for holds, promoted, queues, next_due, *_ in rows]
        self.agree(answers, [(*self.model.promote(term, limit), self.model.next_due())], "promoted")


class DeathRules(PromotingRules):
    @move(6, number=SEAT, how=DEATHS)
    def crash(self, number: int, how: str) -> None:
        """At work. As its supervisor sees it: condemned, emptied, and another one started."""
        seat = self.seat(number)
        self.claim_for(seat, 2)
        self.condemn_seat(number, how, mine=True)
        self.return_jobs_of(seat.id, 500)
        if seat in self.seats:
            self.start(self.seats.index(seat), seat.profile)

    @move(3, number=SEAT, how=DEATHS, mine=st.sampled_from((True, True, False)))
    def condemn_seat(self, number: int, how: str, mine: bool) -> None:
        """Only by its own supervisor."""
        seat = self.seat(number)
        supervisor = seat.supervisor_id if mine else self.holders[0]
        self.run(workers.condemn(seat.id, supervisor, how))
        self.model.condemn(seat.id, supervisor, how)

    @move(4, number=SEAT, limit=LIMITS, all_=st.booleans())
    def return_jobs(self, number: int, limit: int, all_: bool) -> None:
        """Of one, or of all that are condemned; page by page."""
        seat = self.seat(number)
        if not self.model.condemned(None):
            self.claim_for(seat, 3)
            self.condemn_seat(number, "crashed", mine=True)
        self.return_jobs_of(None if all_ else seat.id, limit)

    def return_jobs_of(self, worker_id: str | None, limit: int) -> None:
        [(pending, quarantined, more, queues, *_)] = self.run(jobs.return_jobs(worker_id, limit=limit))
        held = self.model.left_behind(worker_id)
        if len(held) > limit:
            # Any of them may come first.
            still = self.store.picture().jobs
            held = [job_id for job_id in held if still[job_id][COLUMN["worker_id"]] is None]
        self.agree((len(held) <= limit, more), (True, len(held) >= limit), "whether there is more")
        done = self.model.return_jobs(worker_id, held)
        self.agree((pending, quarantined, len(queues)), (done.pending, done.quarantined, done.told), "requeued")

    @move(4, number=st.integers(0, 2))
    def reap(self, number: int) -> None:
        """As the reaper does, in one round."""
        self.wait_for_late_workers(number)
        self.reap_under(self.term("reaper"), reap=True)
        self.return_jobs_of(None, 500)
        self.expire_under(self.term("reaper"), 500)

    @move(2, number=SEAT)
    def lose_a_row(self, number: int) -> None:
        """The row of a worker is removed while it holds jobs. The reaper finds them, and they are requeued."""
        seat, term = self.seat(number), self.term("reaper")
        self.claim_for(seat, 2)
        self.look()
        self.store.sql(f"delete from tenure.workers where id = '{seat.id}' returning 1")
        self.model.remove_row(seat.id)
        self.find_unknown(term)
        if seat in self.seats:
            self.start(self.seats.index(seat), seat.profile)

    @move(2, number=SEAT)
    def lose_a_claim(self, number: int) -> None:
        """The row of a claim is removed while jobs are held under it. Its runs finish nothing; the reaper requeues the jobs."""
        term = self.term("reaper")
        runs = self.claim_for(self.seat(number), 2)
        if not runs:
            return
        self.look()
        self.store.sql(f"delete from tenure.claims where id = '{runs[0].claim_id}' returning 1")
        self.model.remove_claim(runs[0].claim_id)
        outcomes = [Outcome(run=run, state="completed") for run in runs]
        self.agree(self.store.run(jobs.finish(finished(outcomes))), self.model.finish(outcomes), "finished without a claim")
        self.find_unknown(term)

    def find_unknown(self, term: Term) -> None:
        [(holds, unknown, _next)] = self.run(workers.condemn_unknown(term))
        self.agree((holds, sorted(unknown)), self.model.condemn_unknown(term), "workers without a row")
        self.return_jobs_of(None, 500)

    def wait_for_late_workers(self, number: int) -> None:
        """One worker stops renewing while it holds jobs; the others continue."""
        if not self.model.late_workers():
            self.claim_for(self.seats[number], 2)
            self.start(number, self.seats[number].profile)
            for _ in range(2):
                self.time_passes(WORKER_TTL / 2, renewing=True)

    @move(4, number=SEAT)
    def let_leases_run_out(self, number: int) -> None:
        """Jobs whose kind has a lease of its own, while their worker lives."""
        self.wait_for_late_jobs(self.seat(number))
        self.expire_under(self.term("reaper"), 500)

    def wait_for_late_jobs(self, seat: Seat) -> None:
        if not self.model.overdue():
            self.claim_for(seat, 3)
            self.time_passes(4.0, renewing=True)

    def reap_under(self, term: Term, *, reap: bool) -> None:
        [(holds, condemned, waiting, next_end, overdue, _)] = self.run(workers.condemn_expired(term, reap=reap))
        self.agree((holds, condemned), self.model.condemn_expired(term, reap=reap), "condemned")
        self.agree(waiting, bool(self.model.condemned(None)), "condemned ones wait")
        self.agree(overdue, bool(self.model.overdue()), "jobs are overdue")
        books = self.model.books
        ends = [w.expires_at for w in books.workers.values() if w.died_at is None]
        ends += [job.lease_until for job in books.live.values() if job.lease_until is not None]
        late = bool(ends) and (next_end is None or next_end > min(ends) - self.model.now)
        self.agree(late, False, f"it would sleep past the next end, in {next_end} s")

    def expire_under(self, term: Term, limit: int) -> None:
        limit = _up_to_a_gap([job.lease_until for job in self.model.overdue()], limit)
        rows = self.run(jobs.expire(term, limit=limit, max_crashes=MAX_CRASHES))
        done = self.model.expire_jobs(term, limit)
        told = [(pending, quarantined, len(queues)) for pending, quarantined, queues, *_ in rows]
        self.agree(told, [(done.pending, done.quarantined, done.told)], "expired")


class LeaderRules(DeathRules):
    @move(4, holder=HOLDER, duties=st.sampled_from([[duty] for duty in DUTIES] + [list(DUTIES)]))
    def stand(self, holder: int, duties: list[str]) -> None:
        self.acquire_duties(self.holders[holder], duties)

    @move(3, pick=PICK, duty=DUTY, holder=HOLDER)
    def release(self, pick: int, duty: str, holder: int) -> None:
        """Its own terms only, and not one that is over."""
        term = self.some_term(pick, duty)
        self.run(leases.release(self.holders[holder], [term]))
        self.model.release(self.holders[holder], [term])

    @move(4, pick=PICK, duties=st.lists(DUTY, min_size=1, unique=True), holder=HOLDER)
    def beat(self, pick: int, duties: list[str], holder: int) -> None:
        """For several at once, some of which may be over, or another's."""
        terms = [self.some_term(pick, duty) for duty in duties]
        held = [LeaseHeartbeat(name=term.duty, term=term.term, ttl=term.ttl, runs=1, items=2, seconds=0.5) for term in terms]
        rows = self.run(leases.beat(self.holders[holder], held))
        self.agree(sorted(name for (name,) in rows), self.model.beat(self.holders[holder], terms), "renewed")

    @move(3, duty=DUTY, holder=HOLDER)
    def hand_over(self, duty: str, holder: int) -> None:
        term = self.term(duty)
        self.run(leases.release(term.holder, [term]))
        self.model.release(term.holder, [term])
        self.acquire_duties(self.holders[holder], [duty])

    @move(5, pick=PICK, limit=LIMITS)
    def promote_some(self, pick: int, limit: int) -> None:
        self.wait_for_due_jobs()
        self.promote_under(self.some_term(pick, "stager"), limit)

    @move(3, pick=PICK, reap=st.booleans())
    def condemn_expired(self, pick: int, reap: bool) -> None:
        self.wait_for_late_workers(pick % 3)
        self.reap_under(self.some_term(pick, "reaper"), reap=reap)

    @move(3, pick=PICK, limit=LIMITS)
    def expire_jobs(self, pick: int, limit: int) -> None:
        self.wait_for_late_jobs(self.seats[pick % 3])
        self.expire_under(self.some_term(pick, "reaper"), limit)

    @move(3, pick=PICK)
    def clean_keys(self, pick: int) -> None:
        term = self.some_term(pick, "cleaner")
        [(holds, expired, freed, *_)] = self.run(cleaning.clean_keys(term, limit=500))
        self.agree((holds, expired, freed), self.model.clean_keys(term), "keys removed")

    @move(1, pick=PICK)
    def merge_tallies(self, pick: int) -> None:
        """The sums stay the same."""
        term = self.some_term(pick, "cleaner")
        [(holds, *_)] = self.run(cleaning.merge_tallies(term, limit=3))
        self.agree(holds, self.model.leads(term), "the term holds")

    def some_term(self, pick: int, duty: str) -> Term:
        """The last one won; or an older one, or one that was never won, mostly while another one is valid."""
        terms = self.terms[duty]
        if not terms or pick % 4:
            self.term(duty)
        last = terms[-1]
        if pick % 2:
            return last
        another = next(holder for holder in self.holders if holder != last.holder)
        made_up = [replace(last, term=last.term + 1), replace(last, holder=another)]
        return [*made_up, *reversed(terms)][pick // 2 % min(len(terms) + 2, 6)]


def _up_to_a_gap(times: list[float | None], limit: int) -> int:
    """Which of several with the same time come first is not said: the limit takes all of them."""
    taken = 0
    for _, group in groupby(times):
        if taken >= limit:
            break
        taken += len(list(group))
    return max(limit, taken)
