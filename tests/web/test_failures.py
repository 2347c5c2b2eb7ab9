"""Failed jobs in groups, actions on a group or on chosen jobs, and what needs attention."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tenure import Fail, Tenure
from tenure.store.failures import FailureRow
from tenure.web.failure_groups import LONGEST_MESSAGE, STEPS, group_failures, shared_values
from tenure.web.security.redaction import KnownSecrets
from tests.waiting import until

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def failed(error: str, *, kind: str = "deliver", state: str = "retry", ago: float = 10) -> FailureRow:
    return FailureRow(uuid4(), kind, "default", state, 1, 0, NOW - timedelta(seconds=ago), error)


def test_messages_that_differ_in_numbers_and_ids_are_one_group():
    rows = [
        failed(f"shop.Timeout: no answer from host-{n}:443 for {uuid4()} in {n}.5 s\n\nTraceback (most recent call last):\n")
        for n in range(5)
    ]
    [group] = group_failures(rows, NOW, 3600.0)
    assert (group.kind, group.error, group.message, group.jobs) == ("deliver", "Timeout", "no answer from host-* for * in * s", 5)
    assert sum(group.trend) == group.trend[-1] == 5
    assert len(group.trend) == STEPS


def test_other_kinds_errors_and_reasons_are_other_groups():
    rows = [
        failed("ValueError: a\n\n"),
        failed("KeyError: a\n\n"),
        failed("ValueError: a\n\n", kind="other"),
        failed("ValueError: a", state="failed"),
    ]
    groups = group_failures(rows, NOW, 3600.0)
    assert {(group.kind, group.error) for group in groups} == {
        ("deliver", "ValueError"),
        ("deliver", "KeyError"),
        ("other", "ValueError"),
        ("deliver", None),
    }
    assert len({group.id for group in groups}) == 4


def test_a_group_that_rises_comes_first():
    steady = [failed("ValueError: often\n\n", ago=3600 / STEPS * n) for n in range(STEPS)]
    new = [failed("KeyError: new\n\n", ago=n) for n in range(20)]
    assert [group.error for group in group_failures([*steady, *new], NOW, 3600.0)] == ["KeyError", "ValueError"]


def test_the_beginning_of_a_secret_is_not_left_where_a_message_is_cut():
    for n in range(LONGEST_MESSAGE - 20, LONGEST_MESSAGE):
        text = f"{'a ' * (n // 2)}swordfish and more {'b ' * 100}"
        [group] = group_failures([failed(f"ValueError: {text}\n\n")], NOW, 3600.0)
        shown = group.without(KnownSecrets(["swordfish"]))
        assert "sw" not in shown.message + shown.sample
        assert (len(shown.message), len(shown.sample)) == (LONGEST_MESSAGE, LONGEST_MESSAGE)


def test_shared_values_are_those_of_most_jobs():
    inputs = [{"endpoint": "wh_1", "order": n, "nested": {}} for n in range(9)] + [{"endpoint": "wh_2", "order": 1}]
    assert [(one.field, one.value, one.jobs) for one in shared_values(inputs)] == [("endpoint", "wh_1", 9)]
    assert shared_values(["text", None, []]) == []


@pytest.fixture
async def failing(jobs: Tenure, serving):
    """Three dead letters with one cause, one with another."""
    web = await serving.admin()

    @jobs.job
    async def refuses(why: str) -> None:
        raise Fail(why)

    async with jobs.running():
        for n in range(3):
            await jobs.enqueue("burn", {"why": f"order {n} is wrong"})
        await jobs.enqueue("burn", {"why": "no paper"})
        await jobs.enqueue("refuses", {"why": "card declined"})

        async def groups():
            found = (await web.get("/failures")).json()["groups"]
            return {(group["kind"], group["message"]): group["jobs"] for group in found}

        await until(groups, is_={("burn", "order * is wrong"): 3, ("burn", "no paper"): 1, ("refuses", "card declined"): 1})
        yield web


async def group_of(web, message):
    return next(group for group in (await web.get("/failures")).json()["groups"] if group["message"] == message)


async def test_a_group_shows_its_newest_jobs_and_what_they_share(failing):
    group = await group_of(failing, "order * is wrong")
    assert (group["error"], group["states"], group["sample"].startswith("order ")) == ("ValueError", {"dead_letter": 3}, True)
    detail = (await failing.get(f"/failures/{group['id']}")).json()
    assert [job["kind"] for job in detail["newest"]] == ["burn"] * 3
    assert detail["compared"] == 3
    assert (await failing.get("/failures/unknown")).status_code == 404
    assert (await failing.get("/failures?last=90d")).status_code == 422


async def test_the_dead_letters_of_a_group_are_replayed_and_no_other(failing):
    group = await group_of(failing, "order * is wrong")
    body = {"action": "cancel", "filter": {"failure": group["id"], "state": ["dead_letter"]}}
    counted = (await failing.post("/jobs/bulk", json=body)).json()
    assert (counted["dry_run"], counted["matched"], counted["changed"]) == (True, 3, 0)
    done = (await failing.post("/jobs/bulk", json={**body, "dry_run": False})).json()
    assert (done["matched"], done["changed"], done["more"]) == (3, 3, False)
    left = (await failing.get("/jobs", params={"state": "dead_letter"})).json()["jobs"]
    assert [job["input"]["why"] for job in left] == ["no paper"]


async def test_a_job_that_was_acted_on_is_in_no_group_any_more(failing):
    async def counts():
        return {group["message"]: group["jobs"] for group in (await failing.get("/failures")).json()["groups"]}

    dead = (await failing.get("/jobs", params={"state": "dead_letter"})).json()["jobs"]
    orders = [job["id"] for job in dead if "order" in job["input"]["why"]]
    [paper] = [job["id"] for job in dead if "paper" in job["input"]["why"]]
    assert await counts() == {"order * is wrong": 3, "no paper": 1, "card declined": 1}
    await failing.delete(f"/jobs/{orders[0]}")
    assert (await counts())["order * is wrong"] == 2
    await failing.post(f"/jobs/{orders[1]}/cancel")
    assert (await counts())["order * is wrong"] == 1
    await failing.delete(f"/chains/{paper}")
    assert "no paper" not in await counts()


async def test_chosen_jobs_are_counted_once(failing):
    [job, *_] = (await failing.get("/jobs", params={"state": "dead_letter"})).json()["jobs"]
    body = {"action": "delete", "filter": {"ids": [job["id"]] * 2}}
    assert (await failing.post("/jobs/bulk", json=body)).json()["matched"] == 1
    done = (await failing.post("/jobs/bulk", json={**body, "dry_run": False})).json()
    assert (done["matched"], done["changed"]) == (1, 1)


async def test_chosen_jobs_are_changed_and_no_other(failing):
    dead = (await failing.get("/jobs", params={"state": "dead_letter"})).json()["jobs"]
    chosen = [job["id"] for job in dead[:2]]
    body = {"action": "delete", "filter": {"ids": [*chosen, str(uuid4())]}, "dry_run": False}
    done = (await failing.post("/jobs/bulk", json=body)).json()
    assert (done["matched"], done["changed"], done["more"]) == (2, 2, False)
    left = (await failing.get("/jobs", params={"state": "dead_letter"})).json()["jobs"]
    assert {job["id"] for job in left} == {job["id"] for job in dead[2:]}


@pytest.mark.parametrize("more", [{"kind": "burn"}, {"failure": "x"}])
async def test_chosen_jobs_take_no_other_filter(failing, more):
    body = {"action": "cancel", "filter": {"ids": [str(uuid4())], **more}}
    assert (await failing.post("/jobs/bulk", json=body)).status_code == 422


async def test_a_limited_token_sees_its_own_groups_only(failing, serving):
    token = await serving.token("operate", "limited", kinds=["refuses"])
    server = await serving.serve()
    web = await server.client(token)
    assert [group["kind"] for group in (await web.get("/failures")).json()["groups"]] == ["refuses"]
    other = await group_of(failing, "no paper")
    assert (await web.get(f"/failures/{other['id']}")).status_code == 404
    body = {"action": "cancel", "filter": {"failure": other["id"]}, "dry_run": False}
    assert (await web.post("/jobs/bulk", json=body)).json()["changed"] == 0


async def test_what_fails_and_what_is_paused_needs_attention(failing):
    await failing.post("/queues/exports/pause", json={"reason": "repairs"})

    async def titles():
        found = (await failing.get("/findings")).json()["findings"]
        return {(one["code"], one["title"]) for one in found if one["code"] in ("failures", "paused")}

    await until(
        titles,
        is_={("failures", "burn fails: 3 jobs"), ("failures", "burn fails: 1 job"), ("paused", "Queue exports is paused")},
    )
    [paused] = [one for one in (await failing.get("/findings")).json()["findings"] if one["code"] == "paused"]
    assert "repairs" in paused["text"]


async def test_pending_jobs_without_a_worker_need_attention(jobs, serving):
    web = await serving.admin()
    await jobs.enqueue("burn", {"why": "x"})

    async def codes():
        return [one["code"] for one in (await web.get("/findings")).json()["findings"]]

    await until(codes, is_=["no_workers"])
