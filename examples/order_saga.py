"""A workflow that reserves, pays, waits for a webhook and ships, and undoes all of it if something fails."""

import asyncio
from pathlib import Path

from tenure import Fail, JobFailed, Retry, Tenure, WaitTimeout, WorkflowContext
from tenure.embedded import EmbeddedServer

app = Tenure()
done: list[str] = []


def tell(words: str) -> None:
    done.append(words)
    print(words)


@app.step(retry=Retry(max_attempts=3, initial="100ms"))
async def reserve(order: str) -> str:
    tell(f"{order}: reserved")
    return f"stock for {order}"


@app.step
def ask_for_payment(order: str, cents: int, key: str) -> str:  # a plain function runs in a thread
    tell(f"{order}: asked for {cents} cents")
    return key  # with which the payment service charges only once


@app.step
async def ship(order: str, stock: str) -> str:
    if order == "o-2":
        raise Fail("the warehouse is closed")
    tell(f"{order}: shipped {stock}")
    return f"parcel of {order}"


async def release(order: str) -> None:
    tell(f"{order}: stock released")


async def refund(order: str) -> None:
    tell(f"{order}: refunded")


@app.workflow
async def handle_order(ctx: WorkflowContext, order: str) -> str:
    await ctx.on_rollback(release, order)
    stock = await reserve(order)

    await ctx.on_rollback(refund, order)
    await ask_for_payment(order, 999, str(ctx.uuid()))
    ctx.set_status("waiting for the payment")
    try:
        await ctx.wait_for("paid", key=order, timeout="3d")
    except WaitTimeout:
        raise Fail("not paid in time") from None

    ctx.set_status("paid")
    return await ship(order, stock)


async def payment_webhook(order: str) -> None:
    """What the payment service calls, in any process."""
    await app.emit("paid", {"cents": 999}, key=order)


async def main() -> None:
    await app.migrate()
    async with app.running():
        first = await handle_order.enqueue("o-1")
        await payment_webhook("o-1")
        parcel = await first.result(timeout="30s")
        print(parcel)

        second = await handle_order.enqueue("o-2")
        await payment_webhook("o-2")
        try:
            await second.result(timeout="30s")
        except JobFailed as error:
            print(error.error_message)

    assert parcel == "parcel of o-1"
    assert done[-2:] == ["o-2: refunded", "o-2: stock released"]


if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
