"""Measures the dashboard in Chromium: `python -m tests.web.dashboard.figures`, or only a part: `... figures frames`.

Prints the bytes and the time of the first page, the time of a switch between pages, frames per second while 1,000 rows change,
and how many transactions per second open dashboards cost a database in which nothing happens.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg

from tenure import Context, Tenure
from tenure.embedded import EmbeddedServer
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.waiting import until
from tests.web.dashboard.browser import Browser, open_browser
from tests.web.serving import Server

PAGES = ("jobs", "failures", "workflows", "queues", "kinds", "workers", "leaders", "schedules", "dispatch", "audit", "overview")
ROWS, SECONDS = 1000, 10
SPENT = ("Script", "Layout", "RecalcStyle", "Task")
VIEWERS, QUIET = 8, 30
SETTLED = 12  # seconds: PostgreSQL counts the transactions of an idle session after up to ten
ALL = ("first_page", "switches", "idle", "frames")

SWITCH = """new Promise((done) => {
  const began = performance.now();
  location.hash = "#/PAGE";
  const look = () => {
    const main = document.querySelector("#main");
    const isShown = main.dataset.page === "PAGE" && main.children.length && !main.querySelector("[aria-busy]");
    if (isShown) done(performance.now() - began);
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""

FRAMES = """new Promise((done) => {
  const times = [];
  const began = performance.now();
  const frame = (at) => {
    times.push(at);
    if (at - began < SECONDS000) requestAnimationFrame(frame);
    else done(times);
  };
  requestAnimationFrame(frame);
})"""


COUNT_CHANGES = """(() => {
  globalThis.__changed = 0;
  const options = { subtree: true, attributes: true, childList: true, characterData: true };
  const observer = new MutationObserver((list) => { globalThis.__changed += list.length; });
  observer.observe(document.querySelector("#main table"), options);
})()"""


@asynccontextmanager
async def serving(app: Tenure) -> AsyncIterator[Server]:
    async with AsyncExitStack() as stack:
        server = await Server(WebApp(app, WebOptions(open_locally=True)), stack).start()
        try:
            yield server
        finally:
            await server.stop()


async def first_page(browser: Browser, url: str) -> dict[str, Any]:
    runs = []
    for n in range(3):
        runs.append(await browser("traffic", url=url, until=".vital .v", page=f"cold{n}"))
        await browser("close", page=f"cold{n}")
    best = min(runs, key=lambda run: run["now"])
    return {
        "transferred_bytes": max(run["bytes"] for run in runs),
        "unpacked_bytes": best["raw"],
        "first_contentful_paint_ms": round(best["first"]),
        "all_figures_shown_ms": round(best["now"]),
    }


async def switches(browser: Browser, url: str) -> dict[str, Any]:
    await browser("open", url=url)
    await browser.see(".vital .v")
    rounds = [{page: await browser("run", script=SWITCH.replace("PAGE", page)) for page in PAGES} for _ in range(3)]
    first, later = rounds[0], [took for later in rounds[1:] for took in later.values()]
    return {
        "first_visit_ms": {page: round(took) for page, took in first.items()},
        "later_median_ms": round(statistics.median(later)),
        "later_worst_ms": round(max(later)),
    }


async def frames(browser: Browser, url: str, app: Tenure) -> dict[str, Any]:
    async with app.running(concurrency=ROWS):
        await app.enqueue_many([app.jobs["counts"].call(seconds=SECONDS * 6) for _ in range(ROWS)])
        await browser("open", url=f"{url}#/jobs?state=running&rows={ROWS}", page="rows")

        async def shown() -> bool:
            return await browser("count", selector="tr[data-row] progress", page="rows") >= ROWS * 0.95

        await until(shown, within=60)
        await browser("run", script=COUNT_CHANGES, page="rows")
        before, began = await browser("spent", page="rows"), await browser("cpu", page="rows")
        times = await browser("run", script=FRAMES.replace("SECONDS", str(SECONDS)), page="rows")
        after, ended = await browser("spent", page="rows"), await browser("cpu", page="rows")
        changes = await browser("run", script="globalThis.__changed", page="rows")
        await browser("close", page="rows")
        # What this machine can do now: the same jobs run, and the page is empty.
        await browser("open", url="about:blank", page="blank")
        empty = await browser("run", script=FRAMES.replace("SECONDS", str(SECONDS)), page="blank")
        await browser("close", page="blank")
    gaps = [after - before for before, after in pairwise(times)]
    return {
        "rows": ROWS,
        "changes_per_second": round(changes / SECONDS),
        "frames_per_second": round(len(gaps) / SECONDS, 1),
        "frames_per_second_of_an_empty_page": round((len(empty) - 1) / SECONDS, 1),
        "slowest_frame_ms": round(max(gaps)),
        "page_cpu_ms_per_frame": round((ended - began) * 1000 / len(gaps), 1),
        "load_average": round(os.getloadavg()[0], 1),
        "page_ms_per_second": {
            name: round((after[f"{name}Duration"] - before[f"{name}Duration"]) * 1000 / SECONDS) for name in SPENT
        },
    }


async def idle(browser: Browser, url: str, dsn: str) -> dict[str, Any]:
    """Transactions per second that the open pages cause, in all. Without workers and autovacuum, which are counted too."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter system set autovacuum = off")
        connection.execute("select pg_reload_conf()")
    found: dict[str, Any] = {"overview_1_viewer": await cost(browser, url, dsn, "overview", viewers=1)}
    for page in PAGES:
        found[f"{page}_{VIEWERS}_viewers"] = await cost(browser, url, dsn, page, viewers=VIEWERS)
    return found


async def cost(browser: Browser, url: str, dsn: str, page: str, *, viewers: int) -> float:
    for n in range(viewers):
        await browser("open", url=f"{url}#/{page}", page=f"idle{n}")
        await browser.see("#main > *", page=f"idle{n}")
    await asyncio.sleep(SETTLED)
    with psycopg.connect(dsn, autocommit=True) as connection:

        def commits() -> int:
            connection.execute("select pg_stat_force_next_flush()")
            [[count]] = connection.execute(
                "select xact_commit from pg_stat_database where datname = current_database()"
            ).fetchall()
            return int(count)

        before = commits()
        await asyncio.sleep(QUIET)
        # The two statements of this count are ours.
        caused = commits() - before - 2
    for n in range(viewers):
        await browser("close", page=f"idle{n}")
    return round(caused / QUIET, 2)


async def measure(folder: Path, wanted: Sequence[str]) -> dict[str, Any]:
    with EmbeddedServer(folder / "server", durable=False) as server:
        await migrate(DatabaseTarget.at(server.dsn))
        app = Tenure(server.dsn)

        @app.job(timeout=None)
        async def counts(ctx: Context, seconds: int) -> None:
            for n in range(seconds):
                ctx.progress(100 * n / seconds, f"second {n}")
                await asyncio.sleep(1)

        async with open_browser(folder / "browser") as browser, serving(app) as web:
            url = f"{web.url}/"
            found: dict[str, Any] = {}
            async with app.running():
                if "first_page" in wanted:
                    found["first_page"] = await first_page(browser, url)
                if "switches" in wanted:
                    found["switches"] = await switches(browser, url)
                    await browser("close")
            if "idle" in wanted:
                found["idle"] = await idle(browser, url, server.dsn)
            if "frames" in wanted:
                found["frames"] = await frames(browser, url, app)
        await app.close()
    return found


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("wanted", nargs="*", default=ALL, help=f"what to measure: {', '.join(ALL)}")
    wanted = options.parse_args().wanted
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # as root, the server runs under another account, which must be able to enter
        print(json.dumps(asyncio.run(measure(Path(folder).resolve(), wanted)), indent=2))  # noqa: T201


if __name__ == "__main__":
    main()
