"""Show the progress of a job as a bar in the terminal, from any process."""

import asyncio
import time
from pathlib import Path

from rich.progress import Progress

from tenure import Context, State, Tenure
from tenure.embedded import EmbeddedServer

app = Tenure()


@app.job
def import_rows(ctx: Context, rows: int) -> int:
    for row in range(1, rows + 1):
        time.sleep(0.02)
        ctx.progress(100 * row / rows, f"{row} of {rows} rows")  # never waits; the latest report is written every 0.5 s
    return rows


async def main() -> None:
    await app.migrate()
    async with app.running():
        handle = await import_rows.enqueue(100)
        with Progress() as bars:
            bar = bars.add_task("import_rows", total=100)
            async for update in handle.watch():  # each change, until the job is over
                if update.progress is not None:
                    bars.update(bar, completed=update.progress.percent, description=update.progress.message or "")
        status, progress = await handle.status(), await handle.progress()

    assert status.state == State.COMPLETED
    assert progress is not None
    assert (progress.percent, progress.message) == (100, "100 of 100 rows")


if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
