"""Every action that can be taken in the dashboard, against the real thing."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def test_a_running_job_is_canceled(shop, browser):
    job_id = await shop.export()
    await shop.until_state(job_id, "running")
    await browser("open", url=shop.page(f"jobs/{job_id}"))
    await browser.see(".badge", "running")
    await browser.button("Cancel")
    await browser("fill", selector="#ask-reason", value="wrong month")
    await browser.button("Cancel the job")
    await browser.see(".badge", "canceled")
    await shop.until_state(job_id, "canceled")
    assert "wrong month" in (await shop.app.client().find(job_id)).error
    await browser.check()


async def test_a_dead_letter_is_replayed_and_a_waiting_one_retried(shop, browser):
    [dead, *_] = await shop.fail()
    await browser("open", url=shop.page(f"jobs/{dead}"))
    await browser.button("Replay")
    await browser.see(".toast", "pending again")
    waiting = (await shop.app.client().list(state="retry", limit=1)).jobs[0]
    await browser("go", hash=f"#/jobs/{waiting.id}")
    await browser.see("h2.title", "charge_card")
    await browser.button("Retry now")
    await browser.see(".toast", "as soon as a slot is free")

    async def attempts():
        return (await shop.app.client().find(waiting.id)).attempt

    await until(attempts, is_=2)
    await browser.check()


async def test_a_finished_job_runs_again_with_another_input(shop, browser):
    [job_id] = await shop.start("send_receipt")
    await shop.until_state(job_id, "completed")
    await browser("open", url=shop.page(f"jobs/{job_id}"))
    await browser.button("Edit and run…")
    await browser.see("h2", "send_receipt")
    await until(lambda: browser("run", script="document.querySelector('#arg-order')?.value"), is_="0")
    await browser("fill", selector="#arg-order", value="77")
    await browser.button("Dispatch")
    await browser.see(".toast", "is enqueued")
    await browser.button("Open")
    await browser.see("pre.code", "sent 77 to ann@example.org")
    await browser.button("Run again")
    await browser.button("Run it again")
    await browser.see(".toast", "A copy will run")
    await browser.button("Delete…")
    await browser.button("Delete the job")
    await browser.see(".toast", "deleted")
    await browser.check()


class Line(BaseModel):
    sku: str
    amount: int = Field(1, ge=1)


class Card(BaseModel):
    type: Literal["card"] = "card"
    number: str


class Invoice(BaseModel):
    type: Literal["invoice"] = "invoice"
    days: int


class Place(BaseModel):
    city: str
    country: Literal["DE", "FR"]


@pytest.fixture
def place_order(app):
    """A kind with an object, a list, a union and optional parts. Requested before the shop, whose worker publishes it."""

    @app.job(queue="mail")
    async def place_order(
        ship_to: Place,
        lines: list[Line],
        *,
        pay: Annotated[Card | Invoice, Field(discriminator="type")],
        tags: list[str] | None = None,
        bill_to: Place | None = None,
        ratio: float | str = 0.5,
    ) -> None: ...


async def test_a_form_has_fields_for_objects_lists_and_unions(place_order, shop, browser):
    await browser("open", url=shop.page("dispatch/place_order"))
    await browser("see", selector="legend", text="ship_to")
    await browser.button("Add to lines")
    await browser.button("Dispatch")
    await browser.see(".error", "city is required")
    await browser.see(".error", "sku is required")
    await browser("fill", selector="#arg-ship_to\\.city", value="Bonn")
    await browser("choose", selector="#arg-ship_to\\.country", value='"FR"')
    await browser.button("Add to lines")
    await browser.button("Add to lines")
    for n, sku in enumerate(("hat", "coat", "shoe")):
        await browser("fill", selector=f"#arg-lines\\.{n}\\.sku", value=sku)
    await browser("fill", selector="#arg-lines\\.2\\.amount", value="0")
    await browser.button("Remove lines 2")
    await browser("choose", selector="#arg-pay-which", value="1")
    await browser("fill", selector="#arg-pay\\|1\\.days", value="14")
    await browser.button("Add to tags")
    await browser("fill", selector="#arg-tags\\.0", value="gift")
    assert [one for one in await browser.axe() if one["id"] != "region"] == []
    await browser.button("Dispatch")
    await browser.see(".field:has(#arg-lines\\.1\\.amount) .error", "greater than or equal to 1")
    await browser("fill", selector="#arg-lines\\.1\\.amount", value="3")
    await browser.button("Dispatch")
    await browser.see(".toast", "is enqueued")
    [job] = (await shop.app.client().list(kind="place_order")).jobs
    wanted = {
        "ship_to": {"city": "Bonn", "country": "FR"},
        "lines": [{"sku": "hat", "amount": 1}, {"sku": "shoe", "amount": 3}],
        "pay": {"type": "invoice", "days": 14},
        "tags": ["gift"],
    }
    assert job.input == wanted
    # Another job like this one: the form is filled with all of it, and only what is changed differs.
    await browser("go", hash=f"#/dispatch/place_order?like={job.id}")
    await until(lambda: browser("run", script="document.querySelector('#arg-lines\\\\.1\\\\.sku')?.value"), is_="shoe")
    await browser("fill", selector="#arg-ratio", value="0.25")
    await browser.button("Dispatch")
    await until(lambda: _inputs(shop), is_=[{**wanted, "ratio": 0.25}, wanted])
    await browser.check()


async def _inputs(shop):
    return [job.input for job in (await shop.app.client().list(kind="place_order")).jobs]


async def test_a_form_says_what_is_wrong_where(shop, browser):
    await browser("open", url=shop.page("dispatch/export_report"))
    await browser("fill", selector="#arg-rows", value="many")
    await browser.button("Dispatch")
    await browser.see(".error", "'many' is not a whole number")
    await browser.see(".error", "report is required")
    await browser("fill", selector="#arg-report", value="stock")
    await browser("fill", selector="#arg-rows", value="5")
    await browser("fill", selector="#opt-delay", value="soon")
    await browser.button("Dispatch")
    await browser.see(".callout", "It was not dispatched")
    await browser("fill", selector="#opt-delay", value="1h")
    await browser("choose", selector="#opt-priority", value="high")
    await browser.see("aside", '"delay": "1h"')
    await browser.press("Control+Enter")
    await browser.see(".toast", "is enqueued")
    [job] = (await shop.app.client().list(kind="export_report")).jobs
    assert (job.priority, job.input, job.state.value) == (75, {"report": "stock", "rows": 5}, "scheduled")
    await browser.check()


async def test_selected_jobs_and_no_others_are_changed(shop, browser):
    dead = await shop.fail(5)
    await browser("open", url=shop.page("jobs?state=dead_letter"))
    await browser.see("tr[data-row]")
    await until(lambda: browser("count", selector="tr[data-row]"), is_=5)
    for n in (0, 1):
        await browser.click("tr[data-row] input", nth=n)
    await browser.see(".bulk", "2 selected")
    await browser.button("Cancel")
    await browser.see("dialog h2", "Cancel 2 jobs?")
    await browser.button("Cancel 2 jobs")
    await browser.see(".toast", "2 jobs are canceled")
    states = [await shop.state(job_id) for job_id in dead]
    assert sorted(states) == ["canceled"] * 2 + ["dead_letter"] * 3
    await browser.check()


async def test_all_jobs_that_match_are_counted_then_changed(shop, browser):
    dead = await shop.fail(6)
    await browser("open", url=shop.page("jobs?state=dead_letter&kind=render_invoice"))
    await browser.click("tr[data-row] input")
    await browser.button("Select all that match")
    await browser.see(".bulk", "All that match")
    await browser.button("Delete")
    await browser.see("dialog h2", "Delete 6 jobs?")
    await browser.button("Keep as it is")
    assert {await shop.state(job_id) for job_id in dead} == {"dead_letter"}
    await browser.button("Delete")
    await browser.button("Delete 6 jobs")
    await browser.see(".toast", "6 jobs are deleted")
    assert {await shop.state(job_id) for job_id in dead} == {"deleted"}
    await browser.see(".empty h2", "No job matches")
    await browser.check()


async def test_filters_are_typed_kept_in_the_address_and_removed(shop, browser):
    await shop.fail(2)
    await browser("open", url=shop.page("jobs"))
    for typed in ("queue:payments", "order=1"):
        await browser("fill", selector="form.filter input", value=typed)
        await browser.press("Enter")
    await until(lambda: browser("count", selector="tr[data-row]"), is_=2)
    assert "queue=payments&input=%7B%22order%22%3A1%7D" in await browser("run", script="location.hash")
    await browser("fill", selector="form.filter input", value="{broken")
    await browser.press("Enter")
    await browser.see(".error", "This is not JSON")
    await browser.button("Remove filter queue")
    await browser.button("Remove filter input")
    await until(lambda: browser("count", selector="tr[data-row]"), is_=5)
    [job, *_] = (await shop.app.client().list(limit=1)).jobs
    await browser("fill", selector="form.filter input", value=str(job.id))
    await browser.press("Enter")
    await browser.see("h2.title", job.kind)
    await browser.check()


async def test_a_group_of_failures_is_replayed_and_discarded(shop, browser):
    dead = await shop.fail(3)
    await browser("open", url=shop.page("failures"))
    await browser.button("KeyError")
    await browser.see(".detail", "in render_invoice")
    await browser.see(".detail", "Input template")
    await browser.button(f"Replay {dead[0][-8:]}")
    await browser.button("Replay 1 job")
    await browser.see(".toast", "1 job is pending again")
    await shop.until_state(dead[0], "dead_letter")
    await browser.see(".detail button", "Replay 3 dead letters…")
    await browser.button("Replay 3 dead letters…")
    await browser.button("Replay 3 jobs")
    await browser.see(".toast", "3 jobs are pending again")
    for job_id in dead:
        await shop.until_state(job_id, "dead_letter")
    await browser.see(".detail button", "Replay 3 dead letters…")
    await browser.button("Discard…")
    await browser.button("Cancel 3 jobs")
    await browser.see(".toast", "3 jobs are canceled")
    assert {await shop.state(job_id) for job_id in dead} == {"canceled"}
    await browser.check()


async def test_a_queue_is_paused_with_a_reason_and_resumed_by_undo(shop, browser):
    await browser("open", url=shop.page("queues"))
    await browser.button("Pause mail")
    await browser("fill", selector="#ask-reason", value="the provider is down")
    await browser.button("Pause it")
    await browser("hover", selector=".toast")  # with the pointer on it, it stays
    await browser.see("tr.paused", "the provider is down")
    await browser.see(".nav .flag", "1 paused")
    await browser("click", selector=".toast button", text="Undo")
    await browser.gone("tr.paused")
    await browser.button("Pause payments")
    await browser.button("Pause it")
    await browser.button("Resume payments")
    await browser.see(".toast", "runs again")
    await browser.check()


async def test_a_limit_is_set_changed_and_reset(shop, browser):
    await browser("open", url=shop.page("queues"))
    await browser.button("New limit")
    await browser("fill", selector="#ask-name", value="queue:mail")
    await browser("fill", selector="#ask-concurrency", value="3")
    await browser.button("Set it")
    await browser.see("td", "at most 3 running, all workers together")
    await browser.button("Edit queue:mail")
    await browser("fill", selector="#ask-concurrency", value="5")
    await browser.button("Change it")
    await browser.see("td", "at most 5 running, all workers together")
    await browser.button("Reset queue:mail")
    await browser.button("Reset it")
    await browser.see(".toast", "The limit is reset")
    await browser.check()


async def test_a_schedule_is_created_run_paused_resumed_and_deleted(shop, browser):
    await browser("open", url=shop.page("schedules"))
    await browser.button("New schedule")
    for name, value in {
        "name": "nightly",
        "kind": "send_receipt",
        "cron": "0 3 * * *",
        "timezone": "Europe/Berlin",
        "input": '{"order": 9}',
    }.items():
        await browser("fill", selector=f"#ask-{name}", value=value)
    await browser.button("Create it")
    await browser.see("td", "03:00")
    await browser.button("Run now")
    await browser.see(".toast", "will run now")

    async def receipts():
        return [job.output for job in (await shop.app.client().list(kind="send_receipt")).jobs]

    await until(receipts, is_=["sent 9 to ann@example.org"])
    await browser.see("tr[data-row] td a .state", "completed")
    await browser.button("Pause nightly")
    await browser("fill", selector="#ask-reason", value="holidays")
    await browser.button("Pause it")
    await browser.see("tr.paused", "paused")
    await browser.button("nightly", exact=True)
    await browser.see(".detail", "Paused: holidays")
    await browser.see(".detail", "Europe/Berlin")
    await browser.button("Resume nightly")
    await browser.gone("tr.paused")
    await browser.button("Delete…")
    await browser.button("Delete it")
    await browser.see(".empty h2", "No schedules yet")
    await browser.check()


async def test_the_audit_log_shows_calls_and_undoes_them(shop, browser):
    web = await shop.server.client()
    await web.post("/queues/mail/pause", json={"reason": "the provider is down"})
    await browser("open", url=shop.page("audit"))
    await browser.see("td", "the provider is down")
    await browser.button("paused queue")
    await browser.see(".detail", "From 127.0.0.1 with the REST API")
    await browser.button("Undo: paused queue mail")
    await browser.see(".toast", "mail is resumed")
    await browser("open", url=shop.page("audit"), page="again")
    await browser.see("tr:has-text('resumed queue') .tag", "dashboard", page="again")
    await browser.see("tr:has-text('paused queue') .tag", "api", page="again")
    await browser("fill", selector=".filter input", value="resumed")
    await until(lambda: browser("count", selector="tr[data-row]"), is_=1)
    await browser.check()


async def test_a_token_that_may_only_read_can_change_nothing(shop, serving, browser):
    dead = await shop.fail(1)
    token = await serving.token("read", "viewer")
    await browser("open", url=shop.url)
    await browser.see("h1", "Tenure")
    await browser("fill", selector="#token", value="tnr_wrong")
    await browser.button("Sign in")
    await browser.see("[role=alert]", "not valid")
    await browser("fill", selector="#token", value=token)
    await browser.button("Sign in")
    await browser.see(".nav-foot", "viewer")
    await browser("go", hash=f"#/jobs/{dead[0]}")
    await browser.see("h2.title", "render_invoice")
    assert await browser(
        "run", script="[...document.querySelectorAll('.job-head .acts button')].slice(1).every((button) => button.disabled)"
    )
    await browser("go", hash="#/audit")
    await browser.see(".callout", "needs the scope admin")
    await browser.button("Sign out")
    await browser.see("label", "Token")
    assert await browser.axe() == []
    await browser.check()


async def test_a_worker_is_drained_and_resumed(shop, browser):
    await browser("open", url=shop.page("workers"))
    await browser.button("Drain")
    await browser.see("dialog h2", "Drain")
    await browser.button("Drain it")
    await browser.see(".toast", "1 process claims no more jobs")
    await browser.see("tr .badge", "drained")
    [job_id] = await shop.start("send_receipt")
    assert await browser.axe() == []
    await browser("go", hash=f"#/jobs/{job_id}")
    await browser.see(".why", "drain")
    await browser("go", hash="#/workers")
    await browser.click("tr .acts button", text="Resume")
    await browser.see(".toast", "claims jobs again")
    await shop.until_state(job_id, "completed")
    await browser.check()


async def test_a_job_is_dispatched_for_a_time_and_a_capability(shop, browser):
    await browser("open", url=shop.page("dispatch/send_receipt"))
    await browser("fill", selector="#arg-order", value="5")
    await browser("fill", selector="#opt-run_at", value="2099-01-02T03:04")
    await browser("fill", selector="#opt-capability", value="gpu")
    await browser("fill", selector="#opt-max_attempts", value="9")
    await browser("fill", selector="#opt-key", value="once")
    await browser.see("aside", "datetime.fromisoformat(")
    await browser.button("Dispatch")
    await browser.see(".toast", "is enqueued")
    [job] = (await shop.app.client().list(kind="send_receipt")).jobs
    assert (job.state.value, job.capability, job.max_attempts, job.run_at.year) == ("scheduled", "gpu", 9, 2099)
    await browser.button("Dispatch")
    await browser.see(".toast", "A job with this key exists")
    await browser.check()


async def test_groups_of_failures_are_changed_together(shop, browser):
    await shop.fail(3)
    await browser("open", url=shop.page("failures"))
    await browser.see("tr[data-row]", "KeyError")
    for row in ("KeyError", "ConnectionError"):
        await browser.click("tr[data-row] input", role="checkbox", name=f"Select {row}")
    await browser.see(".bulk", "2 groups selected")
    await browser.button("Discard…")
    await browser.button("Cancel 6 jobs")
    await browser.see(".toast", "6 jobs are canceled")
    await browser.gone(".bulk")
    assert len((await shop.app.client().list(state="canceled")).jobs) == 6
    await browser.check()


async def test_a_schedule_is_changed_and_its_marks_show_how_its_jobs_ended(shop, browser):
    web = await shop.server.client()
    body = {"name": "nightly", "kind": "render_invoice", "cron": "0 3 * * *", "input": {"order": 1}}
    (await web.post("/schedules", json=body)).raise_for_status()
    job_id = (await web.post("/schedules/nightly/run")).json()["id"]
    await shop.until_state(job_id, "dead_letter")
    await browser("open", url=shop.page("schedules?name=nightly"))
    await until(lambda: browser("count", selector="tr[data-row] .ticks .bad"), is_=1)
    await browser.button("Edit…")
    await browser("fill", selector="#ask-cron", value="")
    await browser("fill", selector="#ask-every", value="10m")
    await browser("fill", selector="#ask-input", value='{"order": 2}')
    await browser.button("Change it")
    await browser.see(".toast", "Schedule nightly runs")
    found = (await web.get("/schedules/nightly")).json()
    assert (found["cron"], found["every"], found["input"], found["timezone"]) == (None, 600.0, {"order": 2}, "UTC")
    await browser.check()


async def test_the_audit_log_shows_how_many_jobs_and_undoes_a_drain(shop, browser):
    await shop.start("send_receipt", 3, delay="1h")
    web = await shop.server.client()
    [worker] = (await web.get("/workers")).json()["workers"]
    filters = {"kind": "send_receipt", "state": ["scheduled"]}
    sent = await web.post("/jobs/bulk", json={"action": "cancel", "filter": filters, "dry_run": False})
    await shop.until_state(sent.json()["job"]["id"], "completed")
    (await web.post(f"/workers/{worker['id']}/drain")).raise_for_status()
    await browser("open", url=shop.page("audit"))
    await browser.see("tr[data-row] td.n a", "3")
    await browser.button("Undo: drained worker")
    await browser.see(".toast", "is resumed")

    async def draining():
        return [one["draining_at"] for one in (await web.get("/workers")).json()["workers"]]

    await until(draining, is_=[None])
    await browser.check()
