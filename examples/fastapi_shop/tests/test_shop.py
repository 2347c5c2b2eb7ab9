import pytest
from shop import jobs
from shop.db import LedgerEntry, Order, sync_sessions
from sqlalchemy import select

from tenure import JobCanceled
from tenure.testing import assert_enqueued, crash_after, drain, enqueued, override, travel

ORDER = {"tenant": "a", "cents": 500}
BOTH = pytest.mark.parametrize("path", ["/orders", "/orders-sync"])


async def test_the_job_is_enqueued_with_the_order(http):
    answer = (await http.post("/orders", json=ORDER)).json()
    assert_enqueued(jobs.charge_payment, args={"order_id": answer["order_id"], "cents": 500}, times=1)


@BOTH
async def test_neither_is_there_after_a_rollback(http, path):
    assert (await http.post(path, json={**ORDER, "fail": True})).status_code == 409
    assert_enqueued(jobs.charge_payment, times=0)


@BOTH
async def test_an_order_is_charged_at_the_second_attempt(http, path, tenure_app):
    answer = (await http.post(path, json=ORDER)).json()
    runs = await drain(tenure_app)
    assert [(run.kind, run.state) for run in runs] == [
        ("charge_payment", "retry"), ("charge_payment", "completed"), ("send_mail", "completed"),
    ]  # fmt: skip
    status = (await http.get(f"/jobs/{answer['job_id']}")).json()
    assert (status["state"], status["attempt"], status["result"]["attempts"]) == ("completed", 2, 2)
    with sync_sessions() as session:
        assert session.scalars(select(Order.state)).all() == ["paid"]


async def test_a_declined_card_is_not_tried_again(tenure_app):
    await jobs.charge_payment.enqueue(1, 666)
    [run] = await drain(tenure_app)
    assert run.state == "dead_letter"


async def test_another_bank(tenure_app):
    class Fast:
        async def charge(self, key: str, cents: int, attempt: int) -> str:
            return "at once"

    await jobs.charge_payment.enqueue(1, 5)
    with override(tenure_app, {jobs.Bank: Fast}):
        first, _ = await drain(tenure_app)
    assert (first.output.reference, first.output.attempts) == ("at once", 1)


async def test_five_mails_a_second(tenure_app):
    await tenure_app.enqueue_many(jobs.send_mail.call(f"{n}") for n in range(11))
    sent = []
    for _ in range(3):
        sent.append(len(await drain(tenure_app)))
        travel(tenure_app, seconds=1)
    assert sent == [5, 5, 1]


async def test_an_old_mail_is_not_sent(tenure_app):
    await jobs.send_mail.enqueue("tomorrow is today")
    travel(tenure_app, hours=25)
    assert await drain(tenure_app) == []


async def test_a_report_is_made_in_a_process(http, tenure_app):
    job_id = (await http.post("/orders/1/report")).json()["job_id"]
    await drain(tenure_app)
    status = (await http.get(f"/jobs/{job_id}")).json()
    assert (len(status["result"]), status["percent"], status["message"]) == (64, 100, "page 5 of 5")


async def test_one_import_per_tenant_at_a_time(tenure_worker):
    handles = [await jobs.import_csv.enqueue(tenant, "a\n1\n1\n", pause=0.05) for tenant in "aab"]
    assert [await handle.result(timeout="30s") for handle in handles] == [2, 2, 2]
    first, second = sorted([await handle.status() for handle in handles[:2]], key=lambda job: job.started_at)
    assert first.finished_at <= second.started_at


async def test_a_running_import_is_canceled(http, tenure_worker):
    handle = await jobs.import_csv.enqueue("a", "a\n" + "1\n" * 500, pause=0.05)
    async for update in handle.watch():
        if update.progress:
            break
    assert (await http.delete(f"/jobs/{handle.id}")).json() == {"canceled": True}
    with pytest.raises(JobCanceled):
        await handle.result(timeout="30s")


async def test_progress_as_events(http, tenure_worker):
    handle = await jobs.import_csv.enqueue("a", "a\n1\n1\n")
    assert "data: completed 100" in (await http.get(f"/jobs/{handle.id}/events")).text


async def test_an_unknown_job_is_not_found(http):
    assert (await http.get("/jobs/nonsense")).status_code == 404


async def test_new_orders_are_counted_at_three_in_berlin(tenure_app):
    await drain(tenure_app)
    [planned] = await tenure_app.schedules.upcoming("count_new_orders", 1)
    assert planned.hour == 3
    with sync_sessions.begin() as session:
        session.add(Order(**ORDER))
    travel(tenure_app, to=planned)
    assert [run.output for run in await drain(tenure_app)] == [1]


async def test_a_crash_writes_nothing_twice(tenure_app):
    with sync_sessions.begin() as session:
        session.add(order := Order(**ORDER))
        session.flush()
        await jobs.write_once.using(conn=session).enqueue(order.id)
    with crash_after(jobs.write_once):
        await drain(tenure_app)
    with sync_sessions() as session:
        assert session.scalars(select(LedgerEntry.fence)).all() == [2]


async def test_a_key_is_free_again_after_a_rollback():
    with sync_sessions() as session:
        first = jobs.charge_payment.using(conn=session).enqueue_sync(4242, 1)
    second = await jobs.charge_payment.enqueue(4242, 1)
    assert (second.existed, second.id == first.id) == (False, False)
    assert [job.key for job in await enqueued(jobs.charge_payment)] == ["4242"]


async def test_a_job_is_a_function():
    assert await jobs.send_mail("x") == "sent: x"
    assert await jobs.check_card("1") is True
