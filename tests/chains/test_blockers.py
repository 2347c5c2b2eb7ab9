"""Jobs that wait for chains: statements and rounds of the resolver, without a worker."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tenure.model.wakeup import Wakeup
from tenure.store import blockers, chains, cleaning, jobs, late_outputs
from tenure.store.jobs import FinishedRuns
from tests.chains.resolving import Resolving, resolving
from tests.store.database import Claim, Database


@pytest.fixture
async def resolver(database: Database, dsn: str) -> AsyncIterator[Resolving]:
    async with resolving(database, dsn) as made:
        yield made


def blocked(database: Database, *after: str, **more: Any) -> str:
    [job_id] = database.enqueue({"after": list(after), **more})
    return job_id


def state(database: Database, job_id: str) -> str:
    [(found,)] = database.sql("select state from tenure.all_jobs where id = %s", job_id)
    return found


def claim_one(database: Database, job_id: str) -> Claim:
    """Claims everything that is pending, and fails unless that is this one job."""
    claim = database.claim(database.worker())
    assert claim.ids == [job_id]
    return claim


def complete(database: Database, job_id: str, output: Any = None, **how: Any) -> None:
    claim = claim_one(database, job_id)
    assert len(database.fetch(jobs.finish(claim.finished(output=output, **how)))) == 1


def missing(database: Database, job_id: str) -> int | None:
    [(found,)] = database.sql("select missing from tenure.blocked where job_id = %s", job_id)
    return found


async def test_a_job_is_blocked_until_the_chain_ends(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first)
    assert (state(database, second), missing(database, second)) == ("blocked", 1)
    await resolver.settle()
    assert state(database, second) == "blocked"
    complete(database, first, output={"a": 1})
    await resolver.settle()
    assert (state(database, second), missing(database, second)) == ("pending", None)
    assert Wakeup.new_jobs("default") in resolver.heard
    assert database.sql("select state, output, kind from tenure.chain_endings") == [("completed", {"a": 1}, "work")]


async def test_a_blocker_that_has_already_ended_unblocks_at_once(database, resolver):
    [first] = database.enqueue({})
    complete(database, first, output=7)
    second = blocked(database, first)
    await resolver.settle()
    assert state(database, second) == "pending"
    third = blocked(database, first)
    await resolver.settle()
    assert state(database, third) == "pending"
    assert database.sql("select output from tenure.chain_endings") == [(7,)]


async def test_the_whole_chain_counts_not_its_first_link(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first)
    await resolver.settle()
    claim = claim_one(database, first)
    link = str(uuid4())
    runs = FinishedRuns(f"{{{first}}}", f"{{{claim.id}}}", json.dumps({first: [claim.id, {"kind": "work", "id": link}]}))
    [settled] = database.fetch(chains.continue_jobs(runs))
    assert not settled.dependants
    await resolver.settle()
    assert state(database, second) == "blocked"
    # The id of a later link may be given for its chain.
    third = blocked(database, link)
    complete(database, link, output="end")
    await resolver.settle()
    assert (state(database, second), state(database, third)) == ("pending", "pending")
    assert database.sql("select chain_id::text, job_id::text, output from tenure.chain_endings") == [(first, link, "end")]


async def test_blockers_in_the_same_call_must_come_first(database, resolver):
    first, second = str(uuid4()), str(uuid4())
    database.enqueue({"id": first}, {"id": second, "after": [first]})
    complete(database, first)
    await resolver.settle()
    assert state(database, second) == "pending"
    one, other = str(uuid4()), str(uuid4())
    with pytest.raises(psycopg.DataError, match=f"job {one} is to wait for {other}, which does not exist"):
        database.enqueue({"id": one, "after": [other]}, {"id": other, "after": [one]})
    with pytest.raises(psycopg.DataError, match="which does not exist"):
        database.enqueue({"id": one, "after": [one]})
    assert database.sql("select count(*) from tenure.blocked where job_id in (%s, %s)", one, other) == [(0,)]


async def test_an_empty_list_blocks_nothing(database):
    assert state(database, blocked(database)) == "pending"


@pytest.mark.parametrize("ending", ["failed", "canceled", "deleted", "dead_letter"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("policy", ["cancel", "run", "wait"])
async def test_what_happens_when_a_blocker_does_not_complete(database, resolver, ending, when, policy):
    [first, other] = database.enqueue({}, {"queue": "elsewhere"})
    if when == "after":
        second = blocked(database, first, other, on_failure=policy)
        await resolver.settle()
    else:
        # It ends between the enqueue and the first look of the resolver.
        second = blocked(database, first, other, on_failure=policy)
    end(database, first, ending)
    await resolver.settle()
    if policy == "cancel" or (policy == "wait" and ending != "dead_letter"):
        assert state(database, second) == "canceled"
        [(error,)] = database.sql("select error from tenure.history where id = %s", second)
        assert f"chain {first}" in error
        assert ending in error
        return
    assert state(database, second) == "blocked"
    database.run(jobs.cancel([other], error="not needed"))
    await resolver.settle()
    assert (state(database, second), missing(database, second)) == ("pending" if policy == "run" else "canceled", None)


def end(database: Database, job_id: str, how: str) -> None:
    if how == "canceled":
        database.run(jobs.cancel([job_id], error="canceled by ann"))
    elif how == "deleted":
        database.run(jobs.delete([job_id]))
    elif how == "failed":
        complete(database, job_id, state="failed", error="broken")
    else:
        claim = claim_one(database, job_id)
        database.run(jobs.move(claim.outcomes(state="dead_letter", error="broken")))


async def test_with_wait_a_replayed_dead_letter_unblocks_when_it_completes(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first, on_failure="wait")
    end(database, first, "dead_letter")
    await resolver.settle()
    assert state(database, second) == "blocked"
    database.run(jobs.replay([first]))
    await resolver.settle()
    complete(database, first, output=1)
    await resolver.settle()
    assert state(database, second) == "pending"


@pytest.mark.parametrize("when", ["while it waits", "before it waits"])
async def test_with_wait_a_dead_letter_that_is_cleaned_away_ends_the_job(database, resolver, when):
    [first] = database.enqueue({})
    if when == "while it waits":
        second = blocked(database, first, on_failure="wait")
        await resolver.settle()
    end(database, first, "dead_letter")
    if when == "before it waits":
        second = blocked(database, first, on_failure="wait")
    else:
        await resolver.settle()
    assert state(database, second) == "blocked"
    third = blocked(database, second, on_failure="run")
    database.run(cleaning.clean_dead(database.term("cleaner"), limit=10, keep=-1.0))
    await resolver.settle()
    assert (state(database, second), state(database, third)) == ("canceled", "pending")
    [(error,)] = database.sql("select error from tenure.history where id = %s", second)
    assert f"chain {first}" in error
    assert "older than its retention" in error
    assert database.sql("select what, error from tenure.incidents where job_id = %s", second) == [("canceled", error)]


async def test_a_dead_letter_that_was_replayed_is_not_an_end(database, resolver):
    [first] = database.enqueue({})
    blocked(database, first, on_failure="wait")
    await resolver.settle()
    end(database, first, "dead_letter")
    database.run(jobs.replay([first]))
    # The resolver has not looked yet: a job that is enqueued now has nothing to do with the dead letter.
    second = blocked(database, first)
    await resolver.settle()
    assert state(database, second) == "blocked"
    complete(database, first)
    await resolver.settle()
    assert state(database, second) == "pending"


async def test_a_chain_of_waiting_jobs_ends_to_its_last(database, resolver):
    [first] = database.enqueue({})
    line = [first]
    for _ in range(5):
        line.append(blocked(database, line[-1]))
    await resolver.settle()
    end(database, first, "failed")
    await resolver.settle()
    assert {state(database, job_id) for job_id in line[1:]} == {"canceled"}


async def test_a_job_that_is_due_later_is_scheduled_and_not_pending(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first, delay=3600)
    complete(database, first)
    await resolver.settle()
    assert state(database, second) == "scheduled"
    assert Wakeup.job_scheduled() in resolver.heard


async def continued(database: Database, first: str, **link: Any) -> str:
    claim = claim_one(database, first)
    link_id = str(uuid4())
    outcomes = {first: [claim.id, {"kind": "work", "id": link_id, **link}]}
    database.fetch(chains.continue_jobs(FinishedRuns(f"{{{first}}}", f"{{{claim.id}}}", json.dumps(outcomes))))
    return link_id


async def test_a_link_that_waits_for_its_own_chain_fails_with_an_explanation(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first)
    third = blocked(database, second)
    await resolver.settle()
    link = await continued(database, first, after=[third])
    await resolver.settle()
    [(error,)] = database.sql("select error from tenure.history where id = %s", link)
    assert f"waits for chain {third}, which waits for the chain of this job" in error
    assert (state(database, link), state(database, second), state(database, third)) == ("failed", "canceled", "canceled")


async def test_a_link_may_wait_for_its_own_children(database, resolver):
    [first] = database.enqueue({})
    children = database.enqueue(*[{"queue": "children"} for _ in range(3)])
    link = await continued(database, first, after=children)
    await resolver.settle()
    assert (state(database, link), missing(database, link)) == ("blocked", 3)
    claim = database.claim(database.worker(queues=["children"]), queues=["children"])
    database.run(jobs.finish(claim.finished()))
    await resolver.settle()
    assert state(database, link) == "pending"


async def test_two_chains_whose_links_wait_for_each_other_fail(database, resolver):
    one, other = database.enqueue({})[0], database.enqueue({"queue": "elsewhere"})[0]
    first = await continued(database, one, after=[other])
    claim = database.claim(database.worker(queues=["elsewhere"]), queues=["elsewhere"])
    second = str(uuid4())
    outcomes = {other: [claim.id, {"kind": "work", "id": second, "after": [one]}]}
    database.fetch(chains.continue_jobs(FinishedRuns(f"{{{other}}}", f"{{{claim.id}}}", json.dumps(outcomes))))
    await resolver.settle()
    assert {state(database, first), state(database, second)} <= {"failed", "canceled"}


async def test_the_same_chain_twice_counts_twice_and_keeps_its_places(database, resolver):
    first, other = database.enqueue({}, {"queue": "elsewhere"})
    second = blocked(database, first, other, first)
    complete(database, first)
    await resolver.settle()
    assert missing(database, second) == 1
    assert database.sql("select number from tenure.blockers where chain_id = %s order by 1", first) == [(1,), (3,)]


async def test_one_ending_unblocks_many_in_batches(database, resolver):
    resolver.resolver.batch = 7
    [first] = database.enqueue({})
    waiting = database.enqueue(*[{"after": [first]} for _ in range(50)])
    await resolver.settle()
    complete(database, first)
    assert await resolver.settle() >= 50 // 7
    assert database.sql("select state, count(*) from tenure.jobs group by 1") == [("pending", len(waiting))]
    assert database.sql("select count(*) from tenure.chain_endings where not resolved") == [(0,)]


async def test_unblocked_jobs_keep_the_order_in_which_they_were_enqueued(database, resolver):
    [first] = database.enqueue({})
    waiting = [blocked(database, first) for _ in range(20)]
    complete(database, first)
    await resolver.settle()
    assert database.claim(database.worker(), limit=20).ids == waiting


async def test_a_row_that_another_session_has_locked_is_looked_at_again(database, other, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first)
    with other.connection.transaction():
        other.sql("select from tenure.jobs where id = %s for update", first)
        result = await resolver.resolver.run_once(resolver.link, resolver.term)
        assert (result.touched, result.rest) == (0, resolver.resolver.rest_if_left)
    await resolver.settle()
    assert database.sql("select armed from tenure.blockers") == [(True,)]
    complete(database, first)
    with other.connection.transaction():
        other.sql("select from tenure.jobs where id = %s for update", second)
        await resolver.settle()
        assert state(database, second) == "blocked"
    await resolver.settle()
    assert state(database, second) == "pending"


async def test_a_pending_job_that_was_locked_is_looked_for_again_by_the_workers(database, resolver):
    [first] = database.enqueue({})
    blocked(database, first)
    [(before,)] = database.sql("select coalesce(max(returns), 0) from tenure.queues where name = 'default'")
    await resolver.settle()
    assert database.sql("select returns from tenure.queues where name = 'default'") == [(before + 1,)]
    assert Wakeup.new_jobs("default") in resolver.heard


async def test_one_bad_row_stops_no_other(database, resolver):
    [first] = database.enqueue({})
    waiting = [blocked(database, first) for _ in range(8)]
    complete(database, first)
    database.sql("""
        create function refuse() returns trigger language plpgsql as $$
        begin
            if new.id::text = tg_argv[0] and new.state = 'pending' then raise exception 'not this one'; end if;
            return new;
        end $$""")
    try:
        database.sql(f"create trigger refuse before update on tenure.jobs for each row execute function refuse('{waiting[3]}')")
        for _ in range(3):
            await resolver.settle()
        states = [state(database, job_id) for job_id in waiting]
        assert states == ["blocked" if number == 3 else "pending" for number in range(8)]
    finally:
        database.sql("drop trigger refuse on tenure.jobs; drop function refuse()")


async def test_a_job_that_was_canceled_while_it_waited_disturbs_no_round(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first)
    database.run(jobs.cancel([second], error="canceled"))
    complete(database, first)
    await resolver.settle()
    assert state(database, second) == "canceled"
    assert missing(database, second) is None


async def test_an_output_that_is_still_to_come_is_waited_for(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first)
    await resolver.settle()
    claim = claim_one(database, first)
    database.run(late_outputs.owe_output(claim.id, 60))
    database.run(jobs.finish(claim.finished()))
    await resolver.settle()
    assert state(database, second) == "blocked"
    database.run(late_outputs.set_output(first, claim.id, '"late"'))
    await resolver.settle()
    assert state(database, second) == "pending"
    assert database.sql("select output from tenure.chain_endings") == [("late",)]


async def test_the_output_of_a_blocker_outlives_its_history(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first)
    complete(database, first, output=[1, 2])
    await resolver.settle()
    database.sql("truncate tenure.history")
    [row] = database.fetch(blockers.find(second, most=10))
    assert (row.ended, row.state, row.output) == (True, "completed", "[1, 2]")


async def test_a_large_fan_in_costs_each_ending_once(database, resolver):
    """The waiting job is changed once per batch, not once per ending."""
    members = database.enqueue(*[{"dependants": True} for _ in range(3000)])
    second = blocked(database, *members)
    await resolver.settle()
    claim = database.claim(database.worker(), limit=3000)
    database.run(jobs.finish(claim.finished()))
    before = updates(database)
    rounds = await resolver.settle()
    assert state(database, second) == "pending"
    assert updates(database) - before <= rounds + 2


def updates(database: Database) -> int:
    """The number of changes of `blocked` that its one row has counted."""
    [(count,)] = database.sql("select n_tup_upd from pg_stat_xact_user_tables where relname = 'blocked'")
    return int(count)


async def test_without_the_term_nothing_is_written(database, resolver):
    [first] = database.enqueue({})
    blocked(database, first)
    complete(database, first)
    database.end_term("resolver")
    result = await resolver.resolver.run_once(resolver.link, resolver.term)
    assert not result.holds
    assert database.sql("select armed from tenure.blockers") == [(False,)]


async def test_the_output_of_a_blocker_outlives_its_history_when_another_job_waits_for_it(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first)
    complete(database, first, output=[1, 2])
    await resolver.settle()
    database.sql("truncate tenure.history")
    third = blocked(database, first)
    await resolver.settle()
    for job_id in (second, third):
        assert state(database, job_id) == "pending"
        [row] = database.fetch(blockers.find(job_id, most=10))
        assert (row.ended, row.state, row.output) == (True, "completed", "[1, 2]")


async def test_a_blocker_that_was_not_written_because_of_its_key_is_the_job_that_has_the_key(database, resolver):
    [first] = database.enqueue({"key": "k"})
    again, third, second = str(uuid4()), str(uuid4()), str(uuid4())
    database.enqueue({"id": again, "key": "k"}, {"id": third, "key": "k"}, {"id": second, "after": [again, third]})
    await resolver.settle()
    assert database.sql("select chain_id::text from tenure.blockers") == [(first,), (first,)]
    assert (state(database, second), missing(database, second)) == ("blocked", 2)
    complete(database, first)
    await resolver.settle()
    assert state(database, second) == "pending"


async def test_a_refused_job_with_many_blockers_stops_no_other(database, resolver):
    resolver.resolver.batch = 3
    links = database.enqueue(*[{} for _ in range(7)])
    refused, fine = blocked(database, *links[:6]), blocked(database, links[6])
    assert refused < fine
    database.sql("""
        create function refuse() returns trigger language plpgsql as $$
        begin
            if new.id::text = tg_argv[0] then raise exception 'not this one'; end if;
            return new;
        end $$""")
    try:
        database.sql(f"create trigger refuse before update on tenure.jobs for each row execute function refuse('{links[0]}')")
        for _ in range(3):
            await resolver.settle()
        assert database.sql("select armed from tenure.blockers where job_id = %s", fine) == [(True,)]
    finally:
        database.sql("drop trigger refuse on tenure.jobs; drop function refuse()")


def group_of(database: Database, *members: str) -> str:
    [group] = database.enqueue({"kind": "tenure.group", "after": list(members), "on_failure": "run"})
    return group


async def test_a_group_whose_dead_letter_was_replayed_completes(database, resolver):
    first, other = database.enqueue({}, {"queue": "elsewhere"})
    group = group_of(database, first, other)
    end(database, first, "dead_letter")
    await resolver.settle()
    database.run(jobs.replay([first]))
    complete(database, first, output=1)
    await resolver.settle()
    assert (state(database, group), missing(database, group)) == ("blocked", 1)
    claim = database.claim(database.worker(queues=["elsewhere"]), queues=["elsewhere"])
    database.run(jobs.finish(claim.finished(output=2)))
    await resolver.settle()
    [row] = database.sql("select state, output, error from tenure.history where id = %s", group)
    assert row == ("completed", [1, 2], None)
    assert database.sql("select failed from tenure.blocked where job_id = %s", group) == [(None,)]


async def test_a_group_with_too_much_output_ends_without_it(database, resolver, monkeypatch):
    """PostgreSQL refuses JSON of more than 256 MB: the group would never end."""
    monkeypatch.setattr(blockers, "MOST_GROUP_BYTES", 20)
    small, large = database.enqueue({}, {"queue": "elsewhere"})
    groups = group_of(database, small), group_of(database, small, large)
    complete(database, small, output="x" * 10)
    claim = database.claim(database.worker(queues=["elsewhere"]), queues=["elsewhere"])
    database.run(jobs.finish(claim.finished(output="y" * 10)))
    await resolver.settle()
    found = [database.sql("select state, output from tenure.history where id = %s", group) for group in groups]
    assert found == [[("completed", ["x" * 10])], [("completed", None)]]


async def test_a_held_workflow_is_not_woken_by_the_end_of_a_child(database, resolver):
    first = blocked(database, database.enqueue({"queue": "elsewhere"})[0])
    database.sql("""update tenure.jobs set state = 'waiting', system = '{"held": "the code differs"}' where id = %s""", first)
    claim = database.claim(database.worker(queues=["elsewhere"]), queues=["elsewhere"])
    database.run(jobs.finish(claim.finished()))
    await resolver.settle()
    assert (state(database, first), missing(database, first)) == ("waiting", None)


async def test_a_finished_job_is_retried_behind_its_blockers_and_not_behind_its_children(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first)
    complete(database, first, output=1)
    await resolver.settle()
    claim = claim_one(database, second)
    [child] = database.enqueue({"queue": "elsewhere"})
    database.sql("insert into tenure.blockers (chain_id, job_id, number, armed) values (%s, %s, -1, true)", child, second)
    database.run(jobs.finish(claim.finished(state="failed", error="broken")))
    again = str(uuid4())
    database.run(jobs.retry_finished(second, again, None))
    await resolver.settle()
    assert database.sql("select chain_id::text, number from tenure.blockers where job_id = %s", again) == [(first, 1)]
    assert state(database, again) == "pending"


async def test_jobs_behind_a_locked_link_keep_no_other_from_being_armed(database, other, resolver):
    resolver.resolver.batch = 3
    locked, free = database.enqueue({}, {})
    for _ in range(7):
        blocked(database, locked)
    last = blocked(database, free)
    with other.connection.transaction():
        other.sql("select from tenure.jobs where id = %s for update", locked)
        for _ in range(5):
            await resolver.resolver.run_once(resolver.link, resolver.term)
        assert database.sql("select armed from tenure.blockers where job_id = %s", last) == [(True,)]
    for _ in range(3):
        await resolver.settle()
    assert database.sql("select count(*) from tenure.blockers where not armed") == [(0,)]


async def test_jobs_that_cannot_be_unblocked_keep_no_group_from_ending(database, other, resolver):
    resolver.resolver.batch = 3
    [first] = database.enqueue({})
    waiting = [blocked(database, first) for _ in range(5)]
    group = group_of(database, first)
    complete(database, first)
    with other.connection.transaction():
        other.sql("select from tenure.jobs where id = any (%s::uuid[]) for update", waiting)
        for _ in range(5):
            await resolver.resolver.run_once(resolver.link, resolver.term)
        assert state(database, group) == "completed"
    await resolver.settle()
    assert {state(database, job_id) for job_id in waiting} == {"pending"}


async def test_a_chain_that_is_deleted_before_its_end_was_counted_is_a_deleted_one(database, resolver):
    """Its output is gone: a job that waits for it must not run as if there had been none."""
    [first] = database.enqueue({})
    second = blocked(database, first)
    await resolver.settle()
    complete(database, first, output=7)
    database.run(jobs.delete([first]))
    await resolver.settle()
    assert state(database, second) == "canceled"


async def test_a_chain_that_is_deleted_after_its_end_was_counted_has_completed(database, resolver):
    [first] = database.enqueue({})
    second = blocked(database, first)
    complete(database, first, output=7)
    await resolver.settle()
    third = blocked(database, first)
    database.run(jobs.delete([first]))
    await resolver.settle()
    for job_id in (second, third):
        [row] = database.fetch(blockers.find(job_id, most=10))
        assert (state(database, job_id), row.state, row.output) == ("pending", "completed", "7")


@pytest.mark.parametrize("job", [{"on_failure": "run"}, {"kind": "tenure.group", "on_failure": "run"}])
async def test_the_output_of_a_replayed_dead_letter_is_known_before_the_resolver_has_seen_its_new_end(database, resolver, job):
    [first] = database.enqueue({})
    second = blocked(database, first, **job)
    await resolver.part("arm")
    end(database, first, "dead_letter")
    await resolver.part("resolve")
    assert missing(database, second) == 0
    database.run(jobs.replay([first]))
    complete(database, first, output=7)
    [row] = database.fetch(blockers.find(second, most=1))
    assert (row.ended, row.state, row.output) == (True, "completed", "7")
    if "kind" in job:
        await resolver.part("end")
        assert database.sql("select state, output from tenure.history where id = %s", second) == [("completed", [7])]
