"""Workflows, chains and groups of a shop, to look at."""

from __future__ import annotations

import asyncio
from typing import Any

from tenure import Context, Continue, Retry, Tenure, WorkflowContext

app = Tenure()


@app.job(queue="orders")
async def charge_order(order: int) -> str:
    await asyncio.sleep(0.4)
    return f"ch_{order}"


@app.job(queue="orders", retry=Retry(max_attempts=6, initial="40s", max_backoff="2m"))
async def notify_warehouse(order: int) -> None:
    raise ConnectionError("no answer from hooks.example.net:443")


@app.job(queue="orders")
async def send_tracking(order: int) -> Continue[str]:
    return Continue(request_review.using(delay="14d"), order)


@app.job(queue="orders")
async def request_review(order: int) -> str:
    return f"asked about {order}"


@app.job(queue="orders")
async def pick_items(ctx: Context, order: int) -> Continue[str]:
    await asyncio.sleep(0.3)
    return Continue(pack_items, order)


@app.job(queue="orders")
async def pack_items(order: int) -> Continue[str]:
    await asyncio.sleep(0.8)
    return Continue(send_tracking, order)


@app.job(queue="orders")
async def count_shelf(shelf: int) -> int:
    await asyncio.sleep(shelf / 4)
    return shelf * 12


@app.workflow(queue="orders")
async def fulfil_order(ctx: WorkflowContext, order: int, items: int, express: bool = False) -> dict[str, Any]:
    """Reserves, charges, packs and ships an order."""
    reserved = await ctx.step("reserve_stock", reserve, order)
    charged = await ctx.call(charge_order, order)
    ctx.set_status("packing")
    await ctx.gather(ctx.step("print_label", reserve, order), pack(ctx, order), ctx.start(notify_warehouse, order))
    parcel = await ctx.wait_for("parcel.scanned", key=f"order_{order}", timeout="28h")
    await ctx.sleep("before the review", "14d")
    return {"reserved": reserved, "charged": charged, "parcel": parcel}


async def reserve(order: int) -> str:
    await asyncio.sleep(0.4)
    return f"res_{order}"


async def pack(ctx: WorkflowContext, order: int) -> None:
    await ctx.step("pick_items", reserve, order)
    await ctx.step("pack_items", reserve, order)


async def begin(app: Tenure) -> None:
    """Enqueues them, so that there is one in each state."""
    for order in range(88_211, 88_217):
        await app.enqueue("fulfil_order", {"order": order, "items": order % 5 + 1})
    for order in (1, 2, 3):
        await app.enqueue("pick_items", {"order": order})
    await app.gather([count_shelf.call(shelf) for shelf in range(1, 13)] + [count_shelf.using(delay="1h").call(9)])
