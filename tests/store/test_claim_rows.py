"""A claim writes no index of jobs. Its row in tenure.claims is how its jobs are found, so it stays for as long as one is held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tenure.store import claims, jobs, workers
from tests.store.database import Claim, Database, claim_query, everything, finished
from tests.store.forged_jobs import take_over

WRITTEN_BY_A_CLAIM = {"state", "claim_id", "fence", "attempt"}

INDEXED = """
    select distinct a.attname
      from pg_index i
      join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = i.indexrelid and d.refobjid = i.indrelid
      join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
     where i.indrelid = 'tenure.jobs'::regclass"""

UPDATES = "select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables where relid = 'tenure.jobs'::regclass"


@contextmanager
def updates(database: Database) -> Iterator[list[int]]:
    """How many rows of jobs were updated in this block, and how many of these without a word to an index."""
    found: list[int] = []
    with database.connection.transaction():
        [before] = database.sql(UPDATES)
        yield found
        [after] = database.sql(UPDATES)
        found += [late - early for early, late in zip(before, after, strict=True)]


def claimed(database: Database, count: int = 1, worker: str | None = None) -> Claim:
    database.enqueue(*({} for _ in range(count)))
    return database.claim(worker or database.worker(), limit=count)


def claim_ids(database: Database) -> set[str]:
    return {claim_id for (claim_id,) in database.sql("select id::text from tenure.claims")}


def holders(database: Database) -> set[str]:
    return {worker_id for (worker_id,) in database.sql("select id::text from tenure.workers")}


# HOT updates


def test_no_index_of_jobs_names_a_column_that_a_claim_writes(database):
    """Not even in its condition: then every claim would have to write all indexes of the job."""
    indexed = {name for (name,) in database.sql(INDEXED)}
    assert {"id", "queue", "position", "limit_group", "held_group"} <= indexed
    assert indexed & WRITTEN_BY_A_CLAIM == set()


def test_a_claim_is_a_hot_update(fresh_dsn):
    """As long as the page has room for the new version."""
    with Database(fresh_dsn) as database:
        database.sql("alter table tenure.jobs set (fillfactor = 40, autovacuum_enabled = false)")
        database.enqueue(*({"priority": n % 3} for n in range(200)))
        worker = database.worker()
        with updates(database) as made:
            assert len(database.claim(worker, limit=50).ids) == 50
        assert made == [50, 50]


def test_a_requeued_job_is_claimed_by_a_hot_update_again(fresh_dsn):
    with Database(fresh_dsn) as database:
        claim = claimed(database, 10)
        database.run(jobs.move(claim.outcomes(state="pending", refund=1)))
        with updates(database) as made:
            assert len(database.claim(claim.worker_id).ids) == 10
        assert made == [10, 10]


# One row per claim


def test_a_claim_that_takes_nothing_has_no_row(database):
    assert database.claim(database.worker()).ids == []
    assert claim_ids(database) == set()


def test_the_row_of_a_claim_names_its_worker_and_all_of_its_jobs(database):
    first, second = claimed(database, 3), claimed(database, 2)
    found = {
        row[0]: (row[1], set(row[2]))
        for row in database.sql("select id::text, worker_id::text, job_ids::text[] from tenure.claims")
    }
    assert found == {claim.id: (claim.worker_id, set(claim.ids)) for claim in (first, second)}
    assert {job.job_id for job in database.fetch(claims.list_held(first.worker_id))} == set(first.ids)


def test_a_job_that_another_claim_has_now_is_not_found_by_the_former_one(database):
    claim = claimed(database, 2)
    take_over(database.sql, claim.ids[0])
    assert [job.job_id for job in database.fetch(claims.list_held(claim.worker_id))] == [claim.ids[1]]


# The worker removes the rows of claims that are over


def test_claims_under_which_nothing_is_held_are_forgotten(database):
    worker = database.worker()
    ended, held, half = (claimed(database, 2, worker) for _ in range(3))
    database.run(jobs.finish(ended.finished()))
    database.run(jobs.finish(half.finished(half.ids[0])))
    database.run(claims.forget(worker, []))
    assert claim_ids(database) == {held.id, half.id}
    assert {job.job_id for job in database.fetch(claims.list_held(worker))} == {*held.ids, half.ids[1]}


@pytest.mark.parametrize("left", ["finished", "moved", "disowned", "returned", "canceled", "deleted", "taken over"])
def test_the_row_of_a_claim_is_removed_after_every_way_in_which_its_last_job_ends(database, left):
    claim = claimed(database)
    [job_id] = claim.ids
    match left:
        case "finished":
            database.run(jobs.finish(claim.finished()))
        case "moved":
            database.run(jobs.move(claim.outcomes(state="retry", delay=60)))
        case "disowned":
            database.run(claims.disown(database.fetch(claims.list_held(claim.worker_id)), ["default"]))
        case "returned":
            database.sql("update tenure.jobs set lease_until = now() - interval '1 s'")
            database.run(jobs.expire(database.term("reaper"), limit=10, max_crashes=workers.MAX_CRASHES))
        case "canceled":
            database.run(jobs.cancel([job_id], error="canceled"))
        case "deleted":
            database.run(jobs.delete([job_id], force=True))
        case "taken over":
            take_over(database.sql)
    database.run(claims.forget(claim.worker_id, []))
    assert claim.id not in claim_ids(database)


def test_claims_that_the_worker_still_works_on_stay(database):
    """Their outcome may be written already, but an answer is not there yet."""
    worker = database.worker()
    current, ended = claimed(database, 1, worker), claimed(database, 1, worker)
    database.run(jobs.finish(current.finished()))
    database.run(jobs.finish(ended.finished()))
    database.run(claims.forget(worker, [current.id]))
    assert claim_ids(database) == {current.id}


def test_claims_of_others_stay(database):
    theirs = claimed(database)
    database.run(jobs.finish(theirs.finished()))
    database.run(claims.forget(database.worker(), []))
    assert claim_ids(database) == {theirs.id}


def test_a_settlement_that_is_taken_back_keeps_the_row(database, other):
    """What another transaction has deleted and not committed is still held."""
    claim = claimed(database)
    with other.connection.transaction(force_rollback=True):
        other.run(jobs.finish(claim.finished()))
        database.run(claims.forget(claim.worker_id, []))
    assert claim_ids(database) == {claim.id}
    assert database.run(jobs.finish(claim.finished())) == [(claim.ids[0], False, False)]


# The rows of a dead worker


@pytest.mark.parametrize("how", ["crashed", "stopped", "expired"])
def test_claims_that_a_dead_worker_left_behind_go_with_it(database, how):
    """All of their jobs have ended, or are held by others."""
    worker = database.worker()
    completed, moved = claimed(database, 3, worker), claimed(database, 1, worker)
    database.run(jobs.finish(completed.finished()))
    database.run(jobs.move(moved.outcomes(state="retry", delay=60)))
    living = claimed(database)
    database.condemn(worker, how)
    assert database.return_jobs()[:3] == (0, 0, False)
    assert (claim_ids(database), holders(database)) == ({living.id}, {living.worker_id})


def test_a_dead_workers_claims_go_page_by_page_and_the_worker_with_the_last(database):
    worker = database.worker()
    first, second = claimed(database, 4, worker), claimed(database, 4, worker)
    database.condemn(worker)
    for left in (6, 4, 2, 0):
        assert database.run(jobs.return_jobs(None, limit=2))[0][:2] == (2, 0)
        held = {job.job_id for job in database.fetch(claims.list_held(worker))}
        assert len(held) == left, "no job is left without the row by which it is found"
        assert claim_ids(database) == {claim.id for claim in (first, second) if held.intersection(claim.ids)}
        assert holders(database) == ({worker} if left else set())


def test_a_dead_workers_claim_stays_while_one_of_its_jobs_is_locked(database, other):
    worker = database.worker()
    claim, ended = claimed(database, 2, worker), claimed(database, 1, worker)
    database.run(jobs.finish(ended.finished()))
    database.condemn(worker)
    with other.connection.transaction():
        other.sql("select 1 from tenure.jobs where id = %s for no key update", claim.ids[0])
        assert database.return_jobs()[:2] == (1, 0)
        assert claim_ids(database) == {claim.id}
    assert database.return_jobs()[:2] == (1, 0)
    assert (claim_ids(database), holders(database)) == (set(), set())


# A row that a person has removed


def lose(database: Database, claim: Claim) -> None:
    database.sql("delete from tenure.claims where id = %s", claim.id)


def test_jobs_of_a_claim_without_a_row_are_requeued_and_run_again(database):
    worker = database.worker()
    lost, kept = claimed(database, 3, worker), claimed(database, 1, worker)
    lose(database, lost)
    term = database.term("reaper")
    assert database.run(workers.condemn_unknown(term)) == [(True, [lost.id], None)]
    assert database.run(workers.condemn_unknown(term)) == [(True, [], None)], "they are found once"
    assert database.return_jobs()[:2] == (3, 0)
    assert (claim_ids(database), holders(database)) == ({kept.id}, {worker})
    again = database.claim(database.worker())
    assert set(again.ids) == set(lost.ids)
    assert [(job["fence"], job["attempt"], job["crashes"]) for job in again.jobs] == [(2, 1, 1)] * 3
    assert len(database.run(jobs.finish(again.finished()))) == 3
    assert database.run(jobs.finish(lost.finished())) == []
    assert database.run(jobs.finish(kept.finished())) == [(kept.ids[0], False, False)]


def test_without_the_current_term_no_claim_is_restored(database):
    lose(database, claimed(database))
    old = database.term("reaper")
    database.end_term("reaper")
    database.term("reaper")
    assert database.run(workers.condemn_unknown(old))[0][:2] == (False, [])
    assert claim_ids(database) == set()


def test_jobs_of_a_lost_claim_that_have_ended_meanwhile_are_not_touched(database):
    claim = claimed(database, 2)
    lose(database, claim)
    database.run(jobs.cancel([claim.ids[0]], error="canceled"))
    assert database.run(workers.condemn_unknown(database.term("reaper"))) == [(True, [claim.id], None)]
    assert database.return_jobs()[:2] == (1, 0)
    assert [database.job(job_id)["state"] for job_id in claim.ids] == ["canceled", "pending"]
    assert claim_ids(database) == set()


def test_lost_claims_are_searched_for_part_by_part_until_all_jobs_were_examined(database):
    for _ in range(5):
        claimed(database, 3)
    database.sql("delete from tenure.claims")
    term, after, found, looks = database.term("reaper"), None, set(), 0
    while looks == 0 or after is not None:
        [(_, ids, after)] = database.run(workers.condemn_unknown(term, after=after, look=4))
        found.update(ids)
        looks += 1
        database.return_jobs()
    assert looks == 4, "15 jobs, 4 at a time"
    assert database.sql("select count(*) from tenure.jobs where state = 'running'") == [(0,)]
    assert len(found) == 5


@pytest.mark.parametrize("outcome", [{"output": 1}, {"state": "failed", "error": "no"}, {"state": "canceled"}])
def test_a_run_whose_claim_has_no_row_finishes_nothing_and_is_reported_as_lost(database, outcome):
    claim = claimed(database, 2)
    lose(database, claim)
    assert database.run(jobs.finish(claim.finished(**outcome))) == []
    assert database.sql("select state, count(*) from tenure.all_jobs group by 1") == [("running", 2)]
    assert {row[0] for row in database.run(claims.check(claim.outcomes()))} == set(claim.ids)
    database.run(workers.condemn_unknown(database.term("reaper")))
    assert database.return_jobs()[:2] == (2, 0)
    again = database.claim(database.worker())
    assert set(again.ids) == set(claim.ids)
    assert len(database.run(jobs.finish(again.finished()))) == 2


def test_one_run_without_a_claim_in_a_group_does_not_hold_up_the_others(database):
    kept, lost = claimed(database, 2), claimed(database, 2)
    lose(database, lost)
    runs = [(job_id, claim.id) for claim in (lost, kept) for job_id in claim.ids]
    assert {row[0] for row in database.run(jobs.finish(finished(runs)))} == set(kept.ids)


def test_an_unknown_worker_without_jobs_is_only_removed(database):
    """Nothing is requeued, but the rows go."""
    claim = claimed(database)
    database.run(jobs.finish(claim.finished()))
    database.sql("delete from tenure.workers")
    assert database.run(workers.condemn_unknown(database.term("reaper"))) == [(True, [claim.worker_id], None)]
    assert database.return_jobs()[:3] == (0, 0, False)
    assert (claim_ids(database), holders(database)) == (set(), set())


def test_a_claim_cannot_be_written_twice(database):
    """Ids of claims are not used again: a second one with the same id is refused as a whole."""
    claim = claimed(database)
    database.enqueue({})
    with pytest.raises(psycopg.errors.UniqueViolation):
        database.run(claim_query(claim.worker_id, claim.id, lanes=[everything()]))
    assert database.sql("select state, count(*) from tenure.jobs group by 1 order by 1") == [("pending", 1), ("running", 1)]
