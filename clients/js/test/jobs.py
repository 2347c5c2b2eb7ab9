"""A worker whose jobs do what the tests say: each line of stdin is a step of one job.

Prints one line of JSON when it is ready: the database and tokens for the web server, which runs in another process.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tenure import Context, Fail, Tenure
from tenure.embedded import EmbeddedServer
from tenure.store.migrator import migrate
from tenure.web import create_token

steps: defaultdict[str, asyncio.Queue[dict[str, Any]]] = defaultdict(asyncio.Queue)

app = Tenure()


class Exported(BaseModel):
    rows: int
    note: str | None = None


@app.job(queue="exports")
async def export_users(ctx: Context, format: str, columns: list[str] | None = None) -> Exported:  # noqa: A002 - the seed's name
    """Exports all users."""
    return Exported(**await follow(ctx))


@app.job(max_attempts=1)
async def burn(ctx: Context) -> None:
    await follow(ctx)


async def follow(ctx: Context) -> dict[str, Any]:
    while True:
        step = await steps[str(ctx.job_id)].get()
        match step["do"]:
            case "progress":
                ctx.progress(step["percent"], step["message"])
            case "finish":
                return step["output"]
            case "fail":
                raise Fail(step["reason"])
            case "raise":
                raise ValueError(step["reason"])


async def read_steps() -> None:
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        step = json.loads(line)
        steps[step["id"]].put_nowait(step)


async def main(dsn: str) -> None:
    app.configure(dsn=dsn)
    await migrate(app._runtime.database())  # noqa: SLF001
    tokens = {scope: (await create_token(app, scope, scope, rate=0)).token for scope in ("read", "operate", "admin")}
    async with app.running(concurrency=100):
        print(json.dumps({"dsn": dsn, "tokens": tokens}), flush=True)
        await read_steps()  # until the test ends


if __name__ == "__main__":
    with ExitStack() as stack:
        given = os.environ.get("TENURE_TEST_DSN")
        if given is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-tracker-"))
            Path(folder).chmod(0o711)
            given = stack.enter_context(EmbeddedServer(Path(folder) / "server", durable=False)).dsn
        asyncio.run(main(given))
