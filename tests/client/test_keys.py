"""Idempotency keys: while one job owns a key, no second one is created."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from tenure import ConfigError, InvalidPayload, JobEnqueued, KeyTaken
from tenure.store import jobs
from tests.store.forged_jobs import change_state


@pytest.fixture
async def app(app):
    yield app
    await app.close()


@pytest.fixture
def pay(app):
    @app.job
    async def pay(order: str, amount: int = 1) -> str:
        return f"{order}: {amount}"

    return pay


class Payment(BaseModel):
    id: int
    note: str | None = None


@dataclass
class Order:
    payment: Payment
    tags: dict[str, str]


def rows(database):
    return database.sql("select id, key from tenure.all_jobs order by id")


def finish(database, *kinds, worker=None):
    """All that is pending, as a worker would."""
    claim = database.claim(worker or database.worker(), kinds=kinds)
    database.run(jobs.finish(claim.finished(output="done")))
    return len(claim.ids)


KEYS: dict[str, Any] = {
    "a callable that names the parameter": lambda order: order.payment.id,
    "a callable with another name for it": lambda given: given.payment.id,
    "a dotted path": "order.payment.id",
    "a dotted path through a mapping": "order.tags.number",
}


@pytest.mark.parametrize("key", KEYS)
async def test_the_key_of_a_kind_is_made_of_the_arguments(app, database, key):
    @app.job(key=KEYS[key])
    async def work(order: Order) -> None: ...

    def order(number):
        return Order(Payment(id=number), {"number": str(number)})

    first, again, other = [await work.enqueue(order(number)) for number in (7, 7, 8)]
    assert (again.id, again.existed, again.same_input) == (first.id, True, True)
    assert (first.existed, other.existed) == (False, False)
    assert rows(database) == [(first.id, "7"), (other.id, "8")]
    assert ((await again.status()).key, again.kind) == ("7", "work")


async def test_a_callable_may_take_some_of_the_parameters_in_any_order_or_all_under_other_names(app, database):
    @app.job(key=lambda b, a: f"{a}-{b}")
    async def by_name(a: int, b: int, c: int = 3) -> None: ...

    @app.job(key=lambda x, y: f"{x}-{y}")
    async def by_place(a: int, b: int = 2) -> None: ...

    await by_name.enqueue(1, b=2)
    await by_place.enqueue(1)
    assert [key for _, key in rows(database)] == ["1-2", "1-2"]


async def test_a_single_call_may_have_a_key_of_its_own(app, database):
    @app.job(key="order")
    async def pay(order: str) -> None: ...

    first = await pay.using(key="k1").enqueue("a")
    again = await pay.using(key="k1").enqueue("a")
    by_kind = await pay.enqueue("a")
    assert (again.id, by_kind.id == first.id) == (first.id, False)
    assert [key for _, key in rows(database)] == ["k1", "a"]


async def test_other_input_under_the_same_key_is_reported(pay, database, caplog):
    first = await pay.using(key="k").enqueue("a", amount=1)
    assert (await pay.using(key="k").enqueue("a", amount=1)).same_input
    assert caplog.text == ""
    other = await pay.using(key="k").enqueue("a", amount=2)
    assert (other.id, other.existed, other.same_input) == (first.id, True, False)
    [record] = caplog.records
    assert (record.levelno, record.job_id) == (logging.WARNING, str(first.id))
    assert database.sql("select input from tenure.jobs") == [({"order": "a", "amount": 1},)]


async def test_a_key_for_live_jobs_is_free_when_its_job_is_finished_and_not_before(pay, database):
    keyed = pay.using(key="k", key_for="live")
    first = await keyed.enqueue("a")
    worker = database.worker()
    claim = database.claim(worker, kinds=["pay"])
    assert (await keyed.enqueue("a")).id == first.id
    assert database.run(jobs.finish(claim.finished()))
    second = await keyed.enqueue("b")
    assert (second.existed, second.id == first.id) == (False, False)
    assert (await keyed.enqueue("b")).id == second.id


async def test_a_key_with_a_window_outlives_its_job_until_the_window_is_over(app, pay, database):
    @app.job(key="order")
    async def by_default(order: str) -> None: ...

    await by_default.enqueue("a")
    assert database.sql("select scope, expires_at from tenure.keys") == [("forever", None)]

    keyed = pay.using(key="k", key_for="1s")
    first = await keyed.enqueue("a")
    assert finish(database, "pay") == 1
    assert (await keyed.enqueue("a")).id == first.id
    assert (await (await keyed.enqueue("a")).result()) == "done"
    the_window_is_over(database)
    second = await keyed.enqueue("a")
    assert (second.existed, second.id == first.id) == (False, False)
    assert (await keyed.enqueue("a")).id == second.id


def the_window_is_over(database):
    database.sql("update tenure.keys set expires_at = clock_timestamp() - interval '1 second' where scope = 'window'")


async def test_a_window_that_is_over_does_not_free_the_key_of_a_job_still_to_be_done(pay, database):
    keyed = pay.using(key="k", key_for="1s")
    first = await keyed.enqueue("a")
    the_window_is_over(database)
    assert (await keyed.enqueue("a")).id == first.id
    claim = database.claim(database.worker(), kinds=["pay"])
    assert (await keyed.enqueue("a")).id == first.id
    database.run(jobs.finish(claim.finished()))
    assert (await keyed.enqueue("a")).id != first.id


async def test_a_key_kept_forever_is_only_freed_when_its_job_is_deleted(pay, database):
    keyed = pay.using(key="k", key_for="forever")
    first = await keyed.enqueue("a")
    assert finish(database, "pay") == 1
    database.sql("update tenure.keys set taken_at = taken_at - interval '10 years'")
    assert (await keyed.enqueue("a")).id == first.id
    assert await first.delete()
    assert not (await keyed.enqueue("a")).existed


async def test_how_long_a_key_is_kept_is_decided_by_the_call_that_takes_it(pay, database):
    first = await pay.using(key="k", key_for="forever").enqueue("a")
    assert finish(database, "pay") == 1
    assert (await pay.using(key="k", key_for="live").enqueue("a")).id == first.id


async def test_a_key_counts_for_one_kind_only(app, pay, database):
    @app.job
    async def refund(order: str, amount: int = 1) -> None: ...

    first, second = await pay.using(key="k").enqueue("a"), await refund.using(key="k").enqueue("a")
    assert not second.existed
    assert rows(database) == [(first.id, "k"), (second.id, "k")]


@pytest.mark.parametrize("between", [0, 700], ids=["one statement", "several statements"])
async def test_of_calls_with_one_key_in_a_batch_the_first_counts(app, pay, database, between):
    others = [pay.call(f"other {n}") for n in range(between)]
    batch = [pay.using(key="k").call("a"), *others, pay.using(key="k").call("b"), pay.call("c"), pay.using(key="k").call("a")]
    handles = await app.enqueue_many(batch)
    first, second, third, fourth = [handles[0], *handles[-3:]]
    assert (second.id, second.existed, second.same_input) == (first.id, True, False)
    assert (fourth.id, fourth.existed, fourth.same_input) == (first.id, True, True)
    assert (first.existed, third.existed) == (False, False)
    assert {job for job, _ in rows(database)} == {handle.id for handle in handles}
    assert len(rows(database)) == between + 2


async def test_without_a_key_every_call_makes_a_job(app, pay, database):
    @app.job(key="payment.note")
    async def noted(payment: Payment) -> None: ...

    await pay.using(key=None).enqueue("a")
    await pay.using(key=None).enqueue("a")
    await noted.enqueue(Payment(id=1))
    await noted.enqueue(Payment(id=1))
    assert [key for _, key in rows(database)] == [None] * 4
    assert database.sql("select count(*) from tenure.keys") == [(0,)]


BAD = {"empty": "", "too long": "k" * 201, "too long in bytes": "ё" * 101, "with a NUL": "a\0b", "half a character": "\ud800"}


@pytest.mark.parametrize("bad", BAD)
async def test_a_key_that_cannot_be_kept_is_refused_where_it_is_made(app, database, bad):
    @app.job(key="name")
    async def work(name: str) -> None: ...

    with pytest.raises(InvalidPayload, match=r"must be a text that is not empty, without NUL|at most 200 are allowed"):
        work.using(key=BAD[bad])
    with pytest.raises(InvalidPayload):
        await work.enqueue(BAD[bad])
    assert rows(database) == []
    assert (await work.enqueue("k" * 200)).existed is False


MISTAKES: dict[str, Any] = {
    "a path that starts at no parameter": lambda app: app.job(key="oder.id")(plain),
    "a callable that takes more than there is": lambda app: app.job(key=lambda a, b, c: a)(plain),
    "a duration that is none": lambda app: app.job(key="order", key_for="soon")(plain),
    "a negative duration": lambda app: app.job(key="order", key_for=-1)(plain),
    "a duration of a call that is none": lambda app: app.job(plain).using(key="k", key_for="later"),
}


async def plain(order: str, amount: int = 1) -> None: ...


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_definition_is_reported_at_once(app, mistake):
    with pytest.raises(ConfigError) as caught:
        MISTAKES[mistake](app)
    assert str(caught.value)


async def test_a_path_that_leads_nowhere_is_reported_as_a_mistake_of_the_call(app, database):
    """Not as an error from deep inside: nothing was written, and the call can be fixed."""

    @app.job(key="order.payment.number")
    async def work(order: Order) -> None: ...

    with pytest.raises(InvalidPayload, match=r"order\.payment\.number"):
        await work.enqueue(Order(Payment(id=1), {}))


async def test_subscribers_receive_events_of_new_jobs_only(app, pay):
    heard = []
    app.on(JobEnqueued)(heard.append)
    first = await pay.using(key="k").enqueue("a")
    await pay.using(key="k").enqueue("a")
    await app.enqueue_many([pay.using(key="k").call("a"), pay.call("b")])
    assert heard[0].job_id == first.id
    assert len(heard) == 2


async def test_the_whole_input_can_be_the_key_in_every_way_of_passing_it(app, database):
    @app.job(key=True)
    async def charge(order: str, amount: int = 1, tags: dict[str, int] | None = None) -> None: ...

    first = await charge.enqueue("a", tags={"x": 1, "y": 2})
    for same in (
        charge.enqueue(order="a", tags={"y": 2, "x": 1}),
        charge.enqueue("a", 1, {"x": 1, "y": 2}),
        app.enqueue("charge", {"tags": {"x": 1, "y": 2}, "order": "a", "amount": 1}),
    ):
        handle = await same
        assert (handle.id, handle.existed) == (first.id, True)
    assert not (await charge.enqueue("a", 2, {"x": 1, "y": 2})).existed
    assert [len(key) for _, key in rows(database)] == [len("input:") + 64] * 2


async def test_the_whole_input_can_be_the_key_of_a_single_call(app, pay, database):
    first = await pay.using(key=True).enqueue("a")
    assert (await pay.using(key=True).enqueue("a", amount=1)).id == first.id
    assert not (await pay.enqueue("a")).existed
    unknown = await app.enqueue("elsewhere", {"b": 1, "a": [1]}, key=True)
    assert (await app.enqueue("elsewhere", {"a": [1], "b": 1}, key=True)).id == unknown.id


async def test_a_default_that_is_not_a_value_of_its_type_does_not_break_the_key_of_the_input(app):
    missing: Any = object()

    @app.job(key=True)
    async def work(n: int = missing) -> None: ...

    first = await work.enqueue()
    assert (await work.enqueue()).id == first.id
    assert not (await work.enqueue(1)).existed


async def test_a_key_is_kept_forever_by_default(app, database):
    @app.job(key="order")
    async def charge(order: str) -> None: ...

    first = await charge.enqueue("a")
    finish(database, "charge")
    database.sql("update tenure.keys set taken_at = taken_at - interval '10 years'")
    assert (await charge.enqueue("a")).id == first.id
    database.sql("select * from tenure.enqueue(%s)", '[{"kind": "from_sql", "key": "k"}]')
    assert database.sql("select scope from tenure.keys order by kind") == [("forever",), ("forever",)]


def dead_letter(database, kind="pay"):
    claim = database.claim(database.worker(), kinds=[kind])
    database.run(jobs.move(claim.outcomes(state="dead_letter", error="no")))
    return len(claim.ids)


async def test_a_dead_letter_does_not_hold_a_key_that_is_for_live_jobs(pay, database):
    keyed = pay.using(key="k", key_for="live")
    first = await keyed.enqueue("a")
    assert dead_letter(database) == 1
    second = await keyed.enqueue("b")
    assert (second.existed, second.id == first.id) == (False, False)
    assert (await keyed.enqueue("b")).id == second.id


async def test_a_dead_letter_holds_a_key_that_is_forever_or_whose_window_is_not_over(pay, database):
    for key, key_for in (("k1", "forever"), ("k2", "1h")):
        keyed = pay.using(key=key, key_for=key_for)
        first = await keyed.enqueue("a")
        assert dead_letter(database) == 1
        assert (await keyed.enqueue("a")).id == first.id
        assert (await first.retry()).id == first.id
        assert finish(database, "pay") == 1
        assert (await keyed.enqueue("a")).id == first.id


async def test_a_dead_letter_whose_key_another_job_has_cannot_be_replayed_while_that_one_is_live(app, pay, database):
    keyed, client = pay.using(key="k", key_for="live"), app.client()
    first = await keyed.enqueue("a")
    assert dead_letter(database) == 1
    second = await keyed.enqueue("b")
    other = await pay.using(key="other", key_for="live").enqueue("c")
    change_state(database.sql, "dead_letter", other.id)

    with pytest.raises(KeyTaken) as refused:
        await client.replay(first.id, other.id)
    assert refused.value.holders == {first.id: second.id}
    with pytest.raises(KeyTaken, match=f"job {first.id} cannot run again while job {second.id} has the same key"):
        await first.retry()
    assert database.sql("select id, state from tenure.jobs order by id") == [
        (first.id, "dead_letter"),
        (second.id, "pending"),
        (other.id, "pending"),  # what is not concerned was replayed
    ]
    assert await client.replay_all(kind="pay") == 0

    await second.cancel()
    assert await client.replay(first.id) == 1
    assert (await keyed.enqueue("c")).id == first.id  # it has its key again


async def test_of_two_dead_letters_with_one_key_only_the_older_is_replayed(app, pay, database):
    keyed = pay.using(key="k", key_for="live")
    dead = []
    for order in ("a", "b"):
        dead.append(await keyed.enqueue(order))
        assert dead_letter(database) == 1
    assert await app.client().replay_all(kind="pay") == 1
    states = dict(database.sql("select id, state from tenure.jobs"))
    assert sorted(states.values()) == ["dead_letter", "pending"]
    assert states[dead[0].id] == "pending"


async def test_a_key_whose_row_was_cleaned_away_is_taken_again_by_a_replay(pay, database):
    keyed = pay.using(key="k", key_for="live")
    first = await keyed.enqueue("a")
    assert dead_letter(database) == 1
    database.sql("delete from tenure.keys")
    await first.retry()
    assert (await keyed.enqueue("a")).id == first.id


async def test_input_is_compared_by_sha256(pay, database):
    await pay.using(key="k").enqueue("a", amount=1)
    assert database.sql("select length(digest) from tenure.keys") == [(64,)]
    assert (await pay.using(key="k").enqueue("a", amount=1)).same_input
    assert not (await pay.using(key="k").enqueue("a", amount=2)).same_input


def test_no_function_needs_md5(database):
    """A server in FIPS mode lacks it."""
    body = "p.prosrc || coalesce(pg_get_function_sqlbody(p.oid), '')"
    assert database.sql(f"select p.proname from pg_proc p where p.pronamespace = 'tenure'::regnamespace and {body} ~ 'md5'") == []
