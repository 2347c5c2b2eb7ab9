"""Define a job, enqueue it, and wait for its result."""

import asyncio
from pathlib import Path

from tenure import Tenure
from tenure.embedded import EmbeddedServer

app = Tenure()


@app.job
async def send_welcome(user_id: int, template: str = "welcome") -> str:
    return f"{template} sent to user {user_id}"


@app.job
def make_thumbnail(path: str) -> str:  # a plain function runs in a thread, where it may block
    return path.replace(".png", ".thumb.png")


async def main() -> None:
    await app.migrate()  # creates the tables; in production, run `tenure migrate`
    async with app.running():  # a worker in this process; in production, run `tenure worker`
        handle = await send_welcome.enqueue(42)  # the job is durable when this returns
        result = await handle.result(timeout="30s")
        print(result)

        reminder = send_welcome.using(delay="500ms", priority="low")
        later = await reminder.enqueue(42, template="reminder")
        print(await later.result(timeout="30s"))

        handles = await app.enqueue_many([make_thumbnail.call(f"cat{n}.png") for n in range(100)])  # all, or none
        thumbnails = [await handle.result(timeout="30s") for handle in handles]
        print(f"{len(thumbnails)} thumbnails, the last one is {thumbnails[-1]}")

    assert result == "welcome sent to user 42"
    assert thumbnails[-1] == "cat99.thumb.png"


if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
