"""A workflow that is killed at a point that the test names, once. Copied to the folder of a real worker."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

from tenure import Continue, Fail, Tenure, WorkflowContext
from tenure.store.link import Link

app = Tenure()
FOLDER = Path(os.environ.get("TENURE_KILLS", "."))

_passed: Counter[str] = Counter()


def point(name: str) -> None:
    """Dies here if the test wants it, and only the first time."""
    _passed[name] += 1
    for wanted in (name, f"{name} {_passed[name]}"):
        try:
            (FOLDER / f"kill {wanted.replace('/', ' ')}").unlink()
        except FileNotFoundError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)


def told(**fields: Any) -> None:
    with (FOLDER / "ledger").open("a") as ledger:
        ledger.write(json.dumps(fields) + "\n")


_fetch = Link.fetch


async def fetch(self: Link, query: Any, **options: Any) -> Any:
    """Every statement of the worker is a point, before it is sent and after it is answered."""
    point(f"before {query.name}")
    rows = await _fetch(self, query, **options)
    point(f"after {query.name}")
    return rows


Link.fetch = fetch  # type: ignore[method-assign]


async def effect(name: str, what: str, time: str = "") -> str:
    token = str(uuid4())
    told(name=name, what=what, token=token, time=time)
    point(f"in {what}")
    return token


async def book(conn: Any, name: str) -> str:
    await conn.execute("insert into public.journeys values (%s)", [name])
    point("in book")
    return f"booked {name}"


@app.job
async def ticket(name: str) -> str:
    told(name=name, what="ticket", token=name)
    return f"ticket of {name}"


@app.workflow(max_attempts=1)
async def journey(ctx: WorkflowContext, name: str, ending: str = "") -> list[str]:
    started = ctx.now().isoformat()
    first = await ctx.step("first", effect, name, "first", started)
    point("after first")
    await ctx.sleep("nap", "1100ms")
    point("after nap")
    event = await ctx.wait_for("go", key=name)
    point("after wait")
    await ctx.on_rollback(effect, name, "undo")
    booked = await ctx.transaction("book", book, name)
    point("after book")
    called = await ctx.call(ticket, name)
    told(name=name, what="seen", token=[started, first, event, booked, called])
    if ending == "fail":
        raise Fail("as planned")
    return [started, first, event, booked, called]


@app.workflow(max_attempts=1)
async def relay(ctx: WorkflowContext, got: list[str]) -> list[str] | Continue[Any]:
    """Each run receives one signal, and the next one begins."""
    got = [*got, await ctx.wait_for_signal("leg", type=str)]
    return got if len(got) == 2 else ctx.continue_as_new(got)
