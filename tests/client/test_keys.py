"""Idempotency keys: while one job stands for a key, a second one is not made."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from tenure import ConfigError, InvalidPayload, JobEnqueued
from tenure.store import jobs


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


def rows(desk):
    return desk.sql("select id, key from tenure.all_jobs order by id")


def finish(desk, *kinds, worker=None):
    """All that is pending, as a worker would."""
    claim = desk.claim(worker or desk.worker(), kinds=kinds)
    desk.run(jobs.finish(claim.outcomes(output="done")))
    return len(claim.ids)


KEYS: dict[str, Any] = {
    "a callable that names the parameter": lambda order: order.payment.id,
    "a callable with another name for it": lambda given: given.payment.id,
    "a dotted path": "order.payment.id",
    "a dotted path through a mapping": "order.tags.number",
}


@pytest.mark.parametrize("key", KEYS)
async def test_the_key_of_a_kind_is_made_of_the_arguments(app, desk, key):
    @app.job(key=KEYS[key])
    async def work(order: Order) -> None: ...

    def order(number):
        return Order(Payment(id=number), {"number": str(number)})

    first, again, other = [await work.enqueue(order(number)) for number in (7, 7, 8)]
    assert (again.id, again.existed, again.same_input) == (first.id, True, True)
    assert (first.existed, other.existed) == (False, False)
    assert rows(desk) == [(first.id, "7"), (other.id, "8")]
    assert ((await again.status()).key, again.kind) == ("7", "work")


async def test_a_callable_may_take_some_of_the_parameters_in_any_order_or_all_under_other_names(app, desk):
    @app.job(key=lambda b, a: f"{a}-{b}")
    async def by_name(a: int, b: int, c: int = 3) -> None: ...

    @app.job(key=lambda x, y: f"{x}-{y}")
    async def by_place(a: int, b: int = 2) -> None: ...

    await by_name.enqueue(1, b=2)
    await by_place.enqueue(1)
    assert [key for _, key in rows(desk)] == ["1-2", "1-2"]


async def test_a_single_call_may_have_a_key_of_its_own(app, desk):
    @app.job(key="order")
    async def pay(order: str) -> None: ...

    first = await pay.using(key="k1").enqueue("a")
    again = await pay.using(key="k1").enqueue("a")
    by_kind = await pay.enqueue("a")
    assert (again.id, by_kind.id == first.id) == (first.id, False)
    assert [key for _, key in rows(desk)] == ["k1", "a"]


async def test_other_input_under_the_same_key_is_told(pay, desk, caplog):
    first = await pay.using(key="k").enqueue("a", amount=1)
    assert (await pay.using(key="k").enqueue("a", amount=1)).same_input
    assert caplog.text == ""
    other = await pay.using(key="k").enqueue("a", amount=2)
    assert (other.id, other.existed, other.same_input) == (first.id, True, False)
    [record] = caplog.records
    assert (record.levelno, str(first.id) in record.message) == (logging.WARNING, True)
    assert desk.sql("select input from tenure.jobs") == [({"order": "a", "amount": 1},)]


async def test_a_key_for_live_jobs_is_free_when_its_job_is_finished_and_not_before(pay, desk):
    keyed = pay.using(key="k", key_for="live")
    first = await keyed.enqueue("a")
    worker = desk.worker()
    claim = desk.claim(worker, kinds=["pay"])
    assert (await keyed.enqueue("a")).id == first.id
    desk.run(jobs.move(claim.outcomes(state="dead_letter", error="no")))
    assert (await keyed.enqueue("a")).id == first.id
    assert (await first.retry()).id == first.id
    assert finish(desk, "pay", worker=worker) == 1
    second = await keyed.enqueue("b")
    assert (second.existed, second.id == first.id) == (False, False)
    assert (await keyed.enqueue("b")).id == second.id


async def test_a_key_with_a_window_outlives_its_job_until_the_window_is_over(app, pay, desk):
    @app.job(key="order")
    async def by_default(order: str) -> None: ...

    await by_default.enqueue("a")
    assert desk.sql("select expires_at - taken_at from tenure.keys")[0][0].total_seconds() == pytest.approx(86400, abs=1)

    keyed = pay.using(key="k", key_for="1s")
    first = await keyed.enqueue("a")
    assert finish(desk, "pay") == 1
    assert (await keyed.enqueue("a")).id == first.id
    assert (await (await keyed.enqueue("a")).result()) == "done"
    the_window_is_over(desk)
    second = await keyed.enqueue("a")
    assert (second.existed, second.id == first.id) == (False, False)
    assert (await keyed.enqueue("a")).id == second.id


def the_window_is_over(desk):
    desk.sql("update tenure.keys set expires_at = clock_timestamp() - interval '1 second'")


async def test_a_window_that_is_over_does_not_free_the_key_of_a_job_still_to_be_done(pay, desk):
    keyed = pay.using(key="k", key_for="1s")
    first = await keyed.enqueue("a")
    the_window_is_over(desk)
    assert (await keyed.enqueue("a")).id == first.id
    claim = desk.claim(desk.worker(), kinds=["pay"])
    assert (await keyed.enqueue("a")).id == first.id
    desk.run(jobs.finish(claim.outcomes()))
    assert (await keyed.enqueue("a")).id != first.id


async def test_a_key_for_ever_stands_for_ever_but_for_a_job_that_is_deleted(pay, desk):
    keyed = pay.using(key="k", key_for="forever")
    first = await keyed.enqueue("a")
    assert finish(desk, "pay") == 1
    desk.sql("update tenure.keys set taken_at = taken_at - interval '10 years'")
    assert (await keyed.enqueue("a")).id == first.id
    assert await first.delete()
    assert not (await keyed.enqueue("a")).existed


async def test_how_long_a_key_stands_is_decided_by_who_takes_it(pay, desk):
    first = await pay.using(key="k", key_for="forever").enqueue("a")
    assert finish(desk, "pay") == 1
    assert (await pay.using(key="k", key_for="live").enqueue("a")).id == first.id


async def test_a_key_stands_for_one_kind_only(app, pay, desk):
    @app.job
    async def refund(order: str, amount: int = 1) -> None: ...

    first, second = await pay.using(key="k").enqueue("a"), await refund.using(key="k").enqueue("a")
    assert not second.existed
    assert rows(desk) == [(first.id, "k"), (second.id, "k")]


@pytest.mark.parametrize("between", [0, 700], ids=["one statement", "several statements"])
async def test_of_calls_with_one_key_in_a_batch_the_first_counts(app, pay, desk, between):
    others = [pay.call(f"other {n}") for n in range(between)]
    batch = [pay.using(key="k").call("a"), *others, pay.using(key="k").call("b"), pay.call("c"), pay.using(key="k").call("a")]
    handles = await app.enqueue_many(batch)
    first, second, third, fourth = [handles[0], *handles[-3:]]
    assert (second.id, second.existed, second.same_input) == (first.id, True, False)
    assert (fourth.id, fourth.existed, fourth.same_input) == (first.id, True, True)
    assert (first.existed, third.existed) == (False, False)
    assert {job for job, _ in rows(desk)} == {handle.id for handle in handles}
    assert len(rows(desk)) == between + 2


async def test_without_a_key_every_call_makes_a_job(app, pay, desk):
    @app.job(key="payment.note")
    async def noted(payment: Payment) -> None: ...

    await pay.using(key=None).enqueue("a")
    await pay.using(key=None).enqueue("a")
    await noted.enqueue(Payment(id=1))
    await noted.enqueue(Payment(id=1))
    assert [key for _, key in rows(desk)] == [None] * 4
    assert desk.sql("select count(*) from tenure.keys") == [(0,)]


BAD = {"empty": "", "too long": "k" * 513, "with a NUL": "a\0b", "half a character": "\ud800"}


@pytest.mark.parametrize("bad", BAD)
async def test_a_key_that_cannot_be_kept_is_refused_where_it_is_made(app, desk, bad):
    @app.job(key="name")
    async def work(name: str) -> None: ...

    with pytest.raises(InvalidPayload, match="a key is text of 1 to 512 characters"):
        work.using(key=BAD[bad])
    with pytest.raises(InvalidPayload):
        await work.enqueue(BAD[bad])
    assert rows(desk) == []
    assert (await work.enqueue("k" * 512)).existed is False


MISTAKES: dict[str, Any] = {
    "a path that starts at no parameter": lambda app: app.job(key="oder.id")(plain),
    "a callable that takes more than there is": lambda app: app.job(key=lambda a, b, c: a)(plain),
    "a duration that is none": lambda app: app.job(key="order", key_for="soon")(plain),
    "a negative duration": lambda app: app.job(key="order", key_for=-1)(plain),
    "a duration of a call that is none": lambda app: app.job(plain).using(key="k", key_for="later"),
}


async def plain(order: str, amount: int = 1) -> None: ...


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_definition_is_told_at_once(app, mistake):
    with pytest.raises(ConfigError) as caught:
        MISTAKES[mistake](app)
    assert str(caught.value)


async def test_a_path_that_leads_nowhere_is_told_as_a_mistake_of_the_call(app, desk):
    """Not as an error from deep inside: nothing was written, and the call can be mended."""

    @app.job(key="order.payment.number")
    async def work(order: Order) -> None: ...

    with pytest.raises(InvalidPayload, match=r"order\.payment\.number"):
        await work.enqueue(Order(Payment(id=1), {}))


async def test_those_who_listen_hear_of_new_jobs_only(app, pay):
    heard = []
    app.on(JobEnqueued)(heard.append)
    first = await pay.using(key="k").enqueue("a")
    await pay.using(key="k").enqueue("a")
    await app.enqueue_many([pay.using(key="k").call("a"), pay.call("b")])
    assert heard[0].job_id == first.id
    assert len(heard) == 2
