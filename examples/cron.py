"""Run jobs on a schedule: at times of day in a time zone, or at intervals."""

import asyncio
from datetime import datetime
from pathlib import Path

from tenure import Context, Tenure
from tenure.embedded import EmbeddedServer

# Any worker carries out all schedules of its schema. One of its own keeps these away from other examples.
app = Tenure(name="cron-example", schema="cron_example")
planned: asyncio.Queue[datetime] = asyncio.Queue()


@app.cron("0 9 * * 1-5", timezone="Europe/Berlin", input={"to": "sales@example.org"})
@app.job(max_attempts=5)
async def send_report(to: str) -> str:
    return f"report sent to {to}"


@app.cron(every="1s")
async def count_visitors(ctx: Context) -> None:
    assert ctx.scheduled_for is not None
    await planned.put(ctx.scheduled_for)  # the planned time, not the time at which the job runs


async def main() -> None:
    await app.migrate()
    async with app.running():  # of all running workers, one leads and enqueues the jobs of the schedules
        async with asyncio.timeout(60):
            first, second = await planned.get(), await planned.get()
        print(f"count_visitors ran for {first:%H:%M:%S} and {second:%H:%M:%S}")

        for time in await app.schedules.upcoming("send_report", 3):
            print(f"send_report is planned for {time:%A, %H:%M}")

        handle = await app.schedules.run_now("send_report", by="ann")
        sent = await handle.result(timeout="30s")
        print(sent)

    assert first < second
    assert sent == "report sent to sales@example.org"


if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
