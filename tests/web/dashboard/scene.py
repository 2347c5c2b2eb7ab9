"""A shop at work, to look at: `python -m tests.web.dashboard.scene` serves it until Ctrl C.

The jobs of `tenure demo` and of the simulated catalogue run in real worker processes. Only the past is made up: the counters of
the first minute are repeated for the hours before it, because charts of a minute show nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count, islice
from pathlib import Path

import psycopg

from tenure.embedded import EmbeddedServer
from tenure.simulate import catalogue
from tenure.simulate import demo as shop
from tenure.simulate.mix import MIXES
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.waiting import until
from tests.web.dashboard import orders
from tests.web.serving import Server

PAST = """
with last as (select max(minute) as at from tenure.minutes where minute < date_trunc('minute', now()))
insert into tenure.minutes (minute, queue, kind, what, jobs, waited, ran)
select m.minute - n * interval '1 minute', m.queue, m.kind, m.what,
       greatest(1, round(m.jobs * (0.8 + 0.15 * sin(n / 7.0) + 0.25 * random())
           * case when m.what in ('retry', 'dead_letter') and n > 25 then 0.3 else 1 end)),
       m.waited, m.ran
  from tenure.minutes m join last on m.minute = last.at cross join generate_series(1, 400) n
on conflict do nothing;
with last as (select max(at) as at from tenure.latencies where span = 'minute' and at < date_trunc('minute', now()))
insert into tenure.latencies (at, span, queue, kind, measure, bucket, jobs)
select l.at - n * interval '1 minute', l.span, l.queue, l.kind, l.measure,
       greatest(0, least(40, l.bucket + round((random() + random() + random() - 1.5) * 3)))::smallint,
       greatest(1, round(l.jobs * (0.6 + 0.8 * random())))
  from tenure.latencies l join last on l.at = last.at and l.span = 'minute' cross join generate_series(1, 400) n
on conflict do nothing;
with last as (select max(minute) as at from tenure.minutes where minute < date_trunc('minute', now()))
insert into tenure.counters (hour, queue, kind, what, jobs, waited, ran)
select date_trunc('hour', now()) - n * interval '1 hour', m.queue, m.kind, m.what,
       greatest(1, round(m.jobs * 50 * (0.7 + 0.6 * random())
           * case when m.what in ('retry', 'dead_letter') then 0.2 else 1 end)), m.waited * 50, m.ran * 50
  from tenure.minutes m join last on m.minute = last.at cross join generate_series(2, 160) n
on conflict do nothing;
delete from tenure.fleet_minutes where minute < (select max(minute) from tenure.fleet_minutes); -- while the workers started
with last as (select * from tenure.fleet_minutes order by minute desc limit 1)
insert into tenure.fleet_minutes (minute, workers, slots, busy, pending, oldest_seconds, memory_mb, app_versions, queues)
select f.minute - n * interval '1 minute', f.workers - b.less, f.slots - 8 * b.less,
       least(f.slots - 8 * b.less, round(2 + f.busy * (0.5 + 0.2 * sin(n / 9.0) + 0.3 * random()))),
       f.pending, f.oldest_seconds * b.wave, f.memory_mb * (0.82 + 0.18 * ((400 - n) % 90) / 90.0),
       case when n > 22 then '["2026.11.1"]' else f.app_versions end,
       (select coalesce(jsonb_agg(jsonb_build_object('name', q ->> 'name', 'pending', ceil((q ->> 'pending')::float8 * b.wave),
                                                     'oldest', (q ->> 'oldest')::float8 * b.wave)), '[]')
          from jsonb_array_elements(f.queues) q)
  from last f
 cross join generate_series(1, 400) n
 cross join lateral (select case when n in (22, 23) then 2 else 0 end as less,
                            0.35 + 0.25 * sin(n / 11.0) + 0.15 * random() as wave) b
on conflict do nothing;
"""


@asynccontextmanager
async def worker(dsn: str, app: str, name: str, *more: str) -> AsyncIterator[None]:
    env = {**os.environ, "TENURE_DSN": dsn, "TENURE_WORKERS_NAME": name, "TENURE_LOG": "error", "TENURE_APP_VERSION": "2026.11.2"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tenure",
        "worker",
        "--app",
        app,
        "--processes",
        "2",
        "--concurrency",
        "8",
        *more,
        env=env,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            await process.wait()


async def stream() -> None:
    """Jobs of the shop, all the time."""
    for tick in count():
        await shop.app.enqueue_many(shop.stream(tick))
        if tick % 40 == 0:
            await shop.send_invoice.enqueue(tick, f"ann@{shop.WRONG_DOMAIN}")
        await asyncio.sleep(shop.TICK * 2)


async def events(server: Server) -> None:
    """What makes a day: a schedule, a paused queue, a poison pill, jobs that fail, jobs for later."""
    web = await server.client()
    for name, cron in {"nightly_report": "0 3 * * *", "hourly_digest": "0 * * * *", "sync_inventory": "*/5 * * * *"}.items():
        body = {
            "name": name,
            "kind": "monthly_report",
            "cron": cron,
            "timezone": "Europe/Berlin" if "report" in name else "UTC",
            "input": {"month": 1},
        }
        (await web.post("/schedules", json=body)).raise_for_status()
    await web.post("/schedules/hourly_digest/run")
    await web.post("/queues/import/pause", json={"reason": "catalogue moves"})
    await shop.open_upload.enqueue("holiday.mov")
    await catalogue.app.enqueue_many(islice(MIXES["hostile"].draw(seed=7), 120))
    for n in range(12):
        await shop.monthly_report.using(delay=f"{n + 1}h").enqueue(n)
    await web.put("/limits/queue:reports", json={"concurrency": 2})
    await orders.begin(orders.app)


@asynccontextmanager
async def scene(folder: Path, port: int = 0, seconds: float = 125) -> AsyncIterator[tuple[Server, str]]:
    with EmbeddedServer(folder / "server", durable=False) as database:
        await migrate(DatabaseTarget.at(database.dsn))
        shop.app.configure(dsn=database.dsn)
        catalogue.app.configure(dsn=database.dsn)
        orders.app.configure(dsn=database.dsn)
        async with AsyncExitStack() as stack:
            server = await Server(WebApp(shop.app, WebOptions(open_locally=True)), stack).start(port)
            stack.push_async_callback(server.stop)
            for app, name in (
                ("tenure.simulate.demo:app", "general"),
                ("tenure.simulate.demo:app", "hooks"),
                ("tenure.simulate.catalogue:app", "batch"),
                ("tests.web.dashboard.orders:app", "orders"),
            ):
                await stack.enter_async_context(worker(database.dsn, app, name))
            streaming = asyncio.create_task(stream())
            await events(server)
            await asyncio.sleep(seconds)
            with psycopg.connect(database.dsn, autocommit=True) as connection:
                await until(
                    lambda: connection.execute(
                        "select 1 from tenure.minutes where minute < date_trunc('minute', now())"
                    ).fetchall(),
                    within=90,
                )
                connection.execute(PAST)
            yield server, database.dsn
            streaming.cancel()
        for app in (shop.app, catalogue.app, orders.app):
            await app.close()


async def show(folder: Path, port: int, seconds: float) -> None:
    async with scene(folder, port, seconds) as (server, dsn):
        print(f"{server.url}/\n{dsn}", flush=True)  # noqa: T201
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        await stopped.wait()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, default=8099)
    options.add_argument("--seconds", type=float, default=125)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # as root, the server runs under another account, which must be able to enter
        asyncio.run(show(Path(folder).resolve(), given.port, given.seconds))


if __name__ == "__main__":
    main()
