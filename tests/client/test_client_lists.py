"""Pages of jobs, newest first: every filter, no gaps and no doubles."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from tenure import Tenure
from tenure.client.client import Client
from tenure.client.filters import Filters
from tenure.client.pages import live_ids
from tenure.model.errors import ConfigError
from tenure.model.states import FINISHED, LIVE, State
from tenure.store import jobs, lists
from tests.client.stock import id_of, lay_out
from tests.store.database import Database

ROWS = 400
T = 1_700_000_000
FATHER = "parent_id = pg_temp.id_of(1)"


def moment(n: int) -> datetime:
    return datetime.fromtimestamp(T + n, UTC)


# The filter, and the same in SQL.
CASES = {
    "nothing": ({}, "true"),
    **{f"state {state.value}": ({"state": state}, f"state = '{state.value}'") for state in State},
    "all live states": ({"state": sorted(LIVE)}, "finished_at is null"),
    "all finished states": ({"state": sorted(FINISHED)}, "finished_at is not null"),
    "failed and canceled": ({"state": ["failed", "canceled"]}, "state in ('failed', 'canceled')"),
    "pending and running": ({"state": ["pending", "running"]}, "state in ('pending', 'running')"),
    "live and finished": ({"state": ["dead_letter", "failed", "pending"]}, "state in ('dead_letter', 'failed', 'pending')"),
    "a kind": ({"kind": "kind3"}, "kind = 'kind3'"),
    "a queue": ({"queue": "queue1"}, "queue = 'queue1'"),
    "kind and queue": ({"kind": "kind3", "queue": "queue1"}, "kind = 'kind3' and queue = 'queue1'"),
    "a priority": ({"priority": "high"}, "priority = 75"),
    "a capability": ({"capability": "gpu"}, "capability = 'gpu'"),
    "a key": ({"key": "key0"}, "key = 'key0'"),
    "a key of a kind": ({"key": "key13", "kind": "kind2"}, "key = 'key13' and kind = 'kind2'"),
    "a key, failed": ({"key": "key13", "state": "failed"}, "key = 'key13' and state = 'failed'"),
    "a parent": ({"parent": "father"}, FATHER),
    "a parent, completed": ({"parent": "father", "state": "completed"}, f"{FATHER} and state = 'completed'"),
    "since": ({"enqueued_after": moment(200)}, f"enqueued_at >= to_timestamp({T + 200})"),
    "until": ({"enqueued_before": moment(200)}, f"enqueued_at < to_timestamp({T + 200})"),
    "a while": (
        {"enqueued_after": moment(100), "enqueued_before": moment(200), "state": ["completed", "pending"]},
        f"enqueued_at >= to_timestamp({T + 100}) and enqueued_at < to_timestamp({T + 200}) and state in ('completed', 'pending')",
    ),
    "input": ({"input": {"even": True}}, """input @> '{"even": true}'"""),
    "input deep inside": ({"input": {"tags": ["t1"]}, "kind": "kind1"}, """input @> '{"tags": ["t1"]}' and kind = 'kind1'"""),
    "failed of a kind": ({"state": "failed", "kind": "kind1"}, "state = 'failed' and kind = 'kind1'"),
    "failed in a queue": ({"state": "failed", "queue": "queue1"}, "state = 'failed' and queue = 'queue1'"),
    "dead of a kind": ({"state": "dead_letter", "kind": "kind4"}, "state = 'dead_letter' and kind = 'kind4'"),
    "running of a kind": ({"state": "running", "kind": "kind4"}, "state = 'running' and kind = 'kind4'"),
    "a kind that is not there": ({"kind": "nothing"}, "false"),
    "a queue that is not there": ({"queue": "nothing"}, "false"),
    "a key that is not there": ({"key": "nothing"}, "false"),
    "a parent that is not there": ({"parent": uuid4()}, "false"),
}


async def paged(client: Client, limit: int, **words) -> list[UUID]:
    found: list[UUID] = []
    after = None
    while True:
        page = await client.list(limit=limit, after=after, **words)
        assert len(page.jobs) <= limit
        found += [job.id for job in page.jobs]
        if page.next is None:
            return found
        after = page.next


@pytest.fixture
def stocked(database: Database) -> Database:
    lay_out(database, ROWS)
    return database


@pytest.mark.parametrize("limit", [7, 1000])
async def test_every_filter_finds_what_fits_and_nothing_else(client, stocked, limit):
    father = id_of(stocked, 1)
    for name, (words, condition) in CASES.items():
        given = words | {"parent": father} if words.get("parent") == "father" else words
        wanted = [row[0] for row in stocked.sql(f"select id from tenure.all_jobs where {condition} order by id desc")]
        assert await paged(client, limit, **given) == wanted, name
        assert bool(wanted) == (condition != "false"), f"{name} tests nothing"


async def test_a_job_in_a_list_is_the_same_as_when_it_is_found_alone(client, stocked):
    page = await client.list(limit=20)
    assert [await client.find(job.id) for job in page.jobs] == page.jobs
    assert page.jobs[0].input["n"] == ROWS
    assert await client.find(str(page.jobs[0].id)) == page.jobs[0]
    assert await client.find(uuid4()) is None


async def test_iterating_gives_all_of_them(client, stocked):
    wanted = [row[0] for row in stocked.sql("select id from tenure.all_jobs order by id desc")]
    assert [job.id async for job in client.iterate()] == wanted
    assert [job.id async for job in client.iterate(kind="kind3", state="failed")] == [
        row[0] for row in stocked.sql("select id from tenure.all_jobs where kind = 'kind3' and state = 'failed' order by id desc")
    ]


def test_code_without_a_loop_lists_too(dsn, stocked):
    app = Tenure(dsn)
    client = app.client()
    assert len(list(client.iterate_sync())) == ROWS
    page = client.list_sync(limit=3, state="failed")
    assert [job.state for job in page.jobs] == ["failed"] * 3
    assert client.find_sync(page.jobs[0].id) == page.jobs[0]
    app._portal.close()


async def test_a_page_without_more_has_no_next(client, database):
    assert (await client.list()).jobs == []
    assert (await client.list()).next is None
    database.enqueue({}, {})
    assert len((await client.list(limit=2)).jobs) == 2
    assert (await client.list(limit=2)).next is None
    assert (await client.list(limit=1)).next is not None


@pytest.mark.parametrize("after", ["", "nonsense", "12", 5])
async def test_a_cursor_that_is_none_is_refused(client, after):
    with pytest.raises(ConfigError, match="not a cursor"):
        await client.list(after=after)


@pytest.mark.parametrize("limit", [0, 1001])
async def test_a_limit_out_of_bounds_is_refused(client, limit):
    with pytest.raises(ConfigError, match="from 1 to 1000"):
        await client.list(limit=limit)


async def test_a_misspelt_state_is_refused_with_a_suggestion(client):
    with pytest.raises(ConfigError, match="did you mean 'pending'"):
        await client.list(state="panding")


async def test_no_job_is_missed_or_met_twice_while_all_of_them_move(client, database):
    """Between any two statements of a walk, jobs are claimed, and claimed ones finish."""
    ids = database.enqueue(*[{} for _ in range(60)])
    worker = database.worker()
    session = client._runtime.session()
    fetch = session.fetch
    held = []

    async def meddling(query):
        rows = await fetch(query)
        if held:
            database.run(jobs.finish(held.pop().finished()))
        held.append(database.claim(worker, limit=3))
        return rows

    session.fetch = meddling
    found = await paged(client, 4)
    assert [str(job_id) for job_id in found] == sorted(ids, reverse=True)
    assert database.sql("select count(*) from tenure.history")[0][0] > 30


async def test_a_job_that_moved_on_during_the_walk_is_not_shown_in_a_state_that_was_not_asked_for(client, database):
    database.enqueue(*[{} for _ in range(10)])
    worker = database.worker()
    session = client._runtime.session()
    fetch = session.fetch

    async def meddling(query):
        rows = await fetch(query)
        if query.name == "lists/list_live":
            database.claim(worker, limit=5)
        return rows

    session.fetch = meddling
    page = await client.list(state="pending")
    assert [job.state for job in page.jobs] == ["pending"] * 5


async def test_a_look_is_bounded_and_yet_all_is_found(client, database):
    """More rows than a look may pass over, and what is wanted lies at the far end of each table."""
    rows = 2 * lists.MOST_EXAMINED + 50
    lay_out(database, 40)
    database.sql("update tenure.history set kind = 'wanted', queue = 'wanted' where state = 'completed'")
    database.sql("update tenure.jobs set kind = 'wanted', queue = 'wanted'")
    database.sql("insert into tenure.tallies (queue, kind, what, jobs) values ('wanted', 'wanted', 'completed', 1)")
    database.sql(
        "insert into tenure.jobs (id, kind, state, position)"
        " select pg_temp.id_of(n), 'other', 'pending', n from generate_series(41, %s) n",
        rows,
    )
    database.sql(
        "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind,"
        " queue, input) select pg_temp.id_of(n + 50000), 1, now(), now(), 1, 3, 50, 0, 'failed', 'other', 'other', '{}'"
        " from generate_series(41, %s) n",
        rows,
    )
    first = await client.list(queue="wanted")
    assert (first.jobs, first.next is None) == ([], False)
    for words in ({"kind": "wanted"}, {"queue": "wanted"}, {"input": {"even": True}, "kind": "wanted"}):
        condition = "kind = 'wanted'" + (""" and input @> '{"even": true}'""" if "input" in words else "")
        wanted = [row[0] for row in database.sql(f"select id from tenure.all_jobs where {condition} order by id desc")]
        assert [job.id async for job in client.iterate(**words)] == wanted
    assert [ids async for ids in live_ids(client._runtime.session().fetch, Filters.of(kind="wanted"))] == [
        [row[0] for row in database.sql("select id from tenure.jobs where kind = 'wanted' order by id desc")]
    ]
    assert len([job async for job in client.iterate(state="failed")]) == rows - 40 + 10


async def test_kinds_that_share_a_queue_are_merged_at_any_size(client, database):
    database.sql(
        "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind,"
        " queue, input) select gen_random_uuid(), 1, now(), now(), 1, 3, 50, 0, 'completed',"
        " case when n % 100 = 0 then 'rare' || n % 7 else 'common' end,"
        " case when n % 5 = 0 then 'elsewhere' else 'here' end, '{}'"
        " from generate_series(1, 12000) n"
    )
    database.sql(
        "insert into tenure.tallies (queue, kind, what, jobs) select distinct queue, kind, 'completed', 1 from tenure.history"
    )
    for queue in ("here", "elsewhere"):
        wanted = [row[0] for row in database.sql("select id from tenure.history where queue = %s order by id desc", queue)]
        assert await paged(client, 300, queue=queue) == wanted
