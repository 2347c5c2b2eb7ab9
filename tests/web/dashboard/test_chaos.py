"""The dashboard while a chaos campaign runs on the same database: pages stay usable, and at the end they show what is true."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure import Tenure
from tenure.chaos.testbed import SERVER_SETTINGS
from tenure.embedded import EmbeddedServer
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget
from tenure.web import Principal, Scope
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.waiting import until
from tests.web.dashboard.browser import Browser
from tests.web.serving import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SEED, SECONDS, FAULTS = 4_711, 8, 5
CAMPAIGN = f"--seed {SEED} --seconds {SECONDS} --faults {FAULTS} --workers 3 --processes 1 --backlog 200 --workflows 0.05 --json"
ONLY = (
    "kill_child",
    "kill_worker",
    "kill_leader",
    "stop_worker",
    "end_sessions",
    "cut",
    "slow",
    "lock_jobs",
    "lock_rows",
    "crowd",
)
PAGES = ("overview", "jobs", "failures", "workflows", "queues", "kinds", "workers", "leaders", "schedules", "dispatch", "audit")
LIVE = ("pending", "running", "retry", "scheduled", "blocked", "waiting", "dead_letter")
# Rows outside the window are brought up to date when they come into sight.
SHOWN_STATES = """Object.fromEntries([...document.querySelectorAll("tr[data-row]")]
  .filter((row) => row.getBoundingClientRect().bottom > 0 && row.getBoundingClientRect().top < innerHeight)
  .map((row) => [row.dataset.id, row.querySelector(".state").dataset.state]))"""
SHOWN_COUNTS = """Object.fromEntries([...document.querySelectorAll("nav.tabs a[data-state]")]
  .map((tab) => [tab.dataset.state, tab.querySelector(".count")?.innerText]))"""


@asynccontextmanager
async def campaign(dsn: str, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    only = [word for name in ONLY for word in ("--only", name)]
    command = ["-m", "tenure", "chaos", "run", "--dsn", dsn, "--out", str(folder), *CAMPAIGN.split(), *only]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()  # it stops its workers and clients
            await process.wait()


def viewer(_: object) -> Principal:
    """The clients of the campaign create tokens, after which a server is not open any more."""
    return Principal(name="viewer", scope=Scope.ADMIN, rate=0)


async def visit(browser: Browser, page: str) -> None:
    """The page opens and shows content, also while the database fails."""
    await browser("go", hash=f"#/{page}")
    await browser.see(f"#main[data-page='{page}'] :is(td, h2, label)")


async def use(browser: Browser) -> None:
    """What a person does who looks for the cause: every page, then the newest job."""
    for page in PAGES:
        await visit(browser, page)
    await visit(browser, "jobs")
    await browser.see("tr[data-row]")
    await browser.press("j", "Enter")
    await browser.see("#main .badge")
    await browser.see("#main h2", "Timeline")


async def test_pages_stay_usable_and_end_with_the_truth(readable_folder, browser):
    async with AsyncExitStack() as stack:
        database = stack.enter_context(EmbeddedServer(readable_folder / "server", settings=SERVER_SETTINGS, durable=False))
        await migrate(DatabaseTarget.at(database.dsn))
        app = Tenure(database.dsn)
        stack.push_async_callback(app.close)
        server = await Server(WebApp(app, WebOptions(authorize=viewer)), stack).start()
        stack.push_async_callback(server.stop)
        await browser("open", url=f"{server.url}/")
        await browser.see(".vital .v")
        running = await stack.enter_async_context(campaign(database.dsn, readable_folder / "ledger"))
        ended = asyncio.create_task(running.communicate())
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            await until(lambda: connection.execute("select from tenure.all_jobs limit 1").fetchall(), within=60)
            await browser("open", url=f"{server.url}/#/jobs?rows=200", page="list")
            await browser.see("tr[data-row]", page="list")
            rounds = 0
            while not ended.done():
                await use(browser)
                rounds += 1
            assert rounds
            # Whether the campaign kept its promises is the matter of other tests: here it is what happens to the database.
            output = json.loads((await ended)[0])
            assert output["accepted"] > 0
            assert sum(output["faults"].values()) >= FAULTS
            await show_the_truth(browser, connection)
        await browser.check()
        await browser.check(page="list")


async def show_the_truth(browser: Browser, connection: psycopg.Connection[Any]) -> None:
    states = {str(job_id): state for job_id, state in connection.execute("select id, state::text from tenure.all_jobs")}

    async def wrong(page: str) -> dict[str, tuple[str, str | None]]:
        shown = await browser("run", script=SHOWN_STATES, page=page)
        assert shown
        return {job_id: (state, states.get(job_id)) for job_id, state in shown.items() if states.get(job_id) != state}

    await until(lambda: wrong("list"), is_={}, within=30)  # the list that was open all the time
    await visit(browser, "jobs")
    await browser.see("tr[data-row]")
    await until(lambda: wrong("a"), is_={}, within=30)  # and one that is new
    counted = {state: sum(found == state for found in states.values()) for state in LIVE}

    async def tabs() -> dict[str, int]:
        shown = await browser("run", script=SHOWN_COUNTS)
        return {state: int((shown[state] or "-1").replace(",", "")) for state in LIVE}

    await until(tabs, is_=counted, within=30)
    for state in sorted(set(states.values())):
        job_id = next(one for one, found in states.items() if found == state)
        await browser("go", hash=f"#/jobs/{job_id}")
        await browser.see("#main .badge.big", state.replace("_", " "))
