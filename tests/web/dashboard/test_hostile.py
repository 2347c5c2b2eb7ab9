"""200 hostile strings in every field that can reach a page: no script runs, and the policy has nothing to refuse."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from urllib.parse import quote
from uuid import uuid4

import pytest

from tenure.model.findings import Finding
from tenure.model.ids import uuid7
from tests.web.dashboard.hostile import STRINGS, short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGES = (
    "overview",
    "jobs?rows=1000",
    "failures",
    "workflows",
    "workflows/chains?all=1",
    "queues",
    "kinds?last=24h",
    "workers",
    "leaders",
    "schedules",
    "dispatch",
    "audit",
)


FLOWS = ("workflows/{}", "workflows/chains/{}", "workflows?kind={}", "workflows/chains?state={}", "workflows/{}?step={}")


def plant(sql) -> None:
    """As if code, workers and other clients had written them, which no check of the API may be relied on for."""
    for n, text in enumerate(STRINGS):
        name = short(text)
        job_id = str(uuid7())
        state, position = [("retry", 0), ("dead_letter", -1), ("scheduled", 0), ("waiting", -2)][n % 4]
        head = f"{name.replace(':', '_').split()[0]}: {text}"
        frame = f'  File "{name}", line 1, in {name}\n    {name}\n'
        insert(
            sql,
            "jobs",
            id=job_id,
            kind=name,
            queue=name,
            state=state,
            position=position,
            run_at="2030-01-01T00:00:00Z",
            started_at=datetime.now(UTC),
            input=json.dumps({text: text, "list": [text]}),
            error=f"{head}\n\nTraceback (most recent call last):\n{frame}",
            key=name,
            meta=json.dumps({"m": text}),
            auth=json.dumps({"a": text}),
            enqueued_by=name,
            capability=name,
            attempt=1,
        )
        insert(sql, "progress", job_id=job_id, fence=0, percent=10, message=text)
        line = {"at": "2026-01-01T00:00:00+00:00", "level": "info", "message": text, "fields": {text: text}}
        insert(sql, "logs", job_id=job_id, fence=0, first_line=1, last_line=1, lines=json.dumps([line]))
        plant_steps(sql, job_id, name, text)
        insert(sql, "incidents", job_id=job_id, what="failed", by=name, error=text, attempt=1)
        if n % 8 == 0:
            plant_names(sql, name, text)


def plant_steps(sql, job_id: str, name: str, text: str) -> None:
    """As of a workflow that waits, and of a chain that another job waits for."""
    common = {"job_id": job_id, "fence": 0, "started_at": datetime.now(UTC), "due_at": "2030-01-01T00:00:00Z"}
    waits = json.dumps({"event": text, "key": text})
    insert(sql, "steps", name=f"1/{name}", number=1, what="step", state="done", output=json.dumps({text: text}), **common)
    insert(sql, "steps", name=f"2/{name}", number=2, what="step", state="failed", error=f"{name}: {text}", **common)
    insert(sql, "steps", name=text or "x", number=3, what="wait", state="open", output=waits, **common)
    insert(sql, "steps", name="status of it", number=4, what="status", state="done", output=json.dumps(text), **common)
    insert(sql, "blockers", chain_id=job_id, job_id=job_id, number=1, armed=True, met=True)


def plant_names(sql, name: str, text: str) -> None:
    worker, many = str(uuid4()), json.dumps([text])
    insert(sql, "queues", name=name, paused_at=datetime.now(UTC), paused_by=name, pause_reason=text)
    insert(
        sql,
        "workers",
        id=worker,
        supervisor_id=worker,
        host=name,
        pid=1,
        queues=many,
        kinds=many,
        capabilities=many,
        concurrency=5,
        version=name,
        expires_at="2030-01-01T00:00:00Z",
        name=name,
    )
    fields = {text or "x": {"type": "string", "description": text, "enum": [text, "b"]}, "y": {"description": text}}
    kind = {"name": name, "queue": name, "priority": 50, "max_attempts": 3, "description": text, "workflow": True}
    insert(sql, "kinds", name=name, app=name, definition=json.dumps({**kind, "input": {"type": "object", "properties": fields}}))
    insert(
        sql,
        "schedules",
        name=name,
        kind=name,
        every=3600,
        timezone="UTC",
        input=json.dumps({text: text}),
        queue=name,
        priority=50,
        max_attempts=3,
        overlap="skip",
        catch_up="one",
        catch_up_limit=10,
        jitter=0,
        changed_by=name,
        paused_at=datetime.now(UTC),
        paused_by=name,
        pause_reason=text,
    )
    rules = json.dumps({"concurrency_per_key": 1, "key": name})
    insert(sql, "limits", name=f"kind:{name}", declared=rules, override_by=name)
    insert(
        sql,
        "audit",
        request_id=str(uuid4()),
        phase="finished",
        actor=name,
        source="api",
        ip=name,
        action=name,
        subject=name,
        request=json.dumps({text: text, "reason": text}),
        before=json.dumps(text),
        after=many,
        status=200,
    )


def insert(sql, table: str, **values: object) -> None:
    marks = ", ".join(["%s"] * len(values))
    sql(f"insert into tenure.{table} ({', '.join(values)}) values ({marks}) on conflict do nothing", *values.values())


async def test_no_script_runs(shop, sql, browser):
    plant(sql)
    sql(
        "update tenure.leases set metadata = metadata || %s where name = 'doctor'",
        json.dumps({"last_error": STRINGS[0], "found": [asdict(Finding("code", text, text)) for text in STRINGS[:40]]}),
    )
    await browser("open", url=shop.url)
    for page in PAGES:
        await browser("go", hash=f"#/{page}")
        await browser.see("#main :is(tr, li, h2)")
        await browser("run", script="new Promise((done) => setTimeout(done, 300))")
        await browser.check()
    for name in [short(text) for text in STRINGS[::8]]:
        await browser("go", hash=f"#/dispatch/{quote(name, safe='')}")
        await browser("go", hash=f"#/schedules?name={quote(name)}")
        await browser("go", hash=f"#/queues?q={quote(name)}")
    await browser.check()


async def test_no_script_runs_on_the_page_of_a_job(shop, sql, browser):
    plant(sql)
    await browser("open", url=shop.url)
    for [job_id] in sql("select id::text from tenure.jobs where position <= 0"):
        await browser("go", hash=f"#/jobs/{job_id}")
        await browser.see("span.mono.cut", job_id)
    await browser.check()


async def test_no_script_runs_on_the_pages_of_workflows_and_chains(shop, sql, browser):
    plant(sql)
    await browser("open", url=shop.url)
    for n, [job_id] in enumerate(sql("select id::text from tenure.jobs where position <= 0")):
        await browser("go", hash=f"#/workflows/{job_id}{'?as=list' if n % 2 else ''}")
        await browser.see("span.mono.cut", job_id)
        if n % 2:
            await browser("go", hash=f"#/workflows/chains/{job_id}")
            await browser.see("span.mono.cut", job_id)
    await browser.check()


async def test_addresses_and_what_is_typed_are_text_too(shop, browser):
    await browser("open", url=shop.url)
    for text in STRINGS[:60]:
        for route in ("jobs?kind={}", "jobs/{}", "failures?q={}", "queues?q={}", "{}", "dispatch/{}", "jobs?state={}", *FLOWS):
            await browser("go", hash="#/" + route.replace("{}", quote(text, safe="")))
    await browser.check()
    await browser("go", hash="#/jobs")
    for text in STRINGS[:20]:
        await browser("fill", selector="form.filter input", value=text.replace("\n", " "))
        await browser.press("Enter")
    await browser.press("Control+k")
    for text in STRINGS[:20]:
        await browser("fill", selector=".palette input", value=text.replace("\n", " "))
    await browser.check()
