"""The background jobs of the shop."""

import csv
import hashlib
import io
from typing import Annotated

from pydantic import BaseModel
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from shop.db import LedgerEntry, Order, async_sessions, get_async_session
from tenure import Context, Fail, Limit, Provide, Rate, Retry, RetryAfter, Tenure, provided

app = Tenure(name="shop")


class CardDeclinedError(Exception):
    pass


class Receipt(BaseModel):
    order_id: int
    reference: str
    attempts: int


class Bank:
    """Answers at the second call."""

    async def charge(self, key: str, cents: int, attempt: int) -> str:
        if cents == 666:
            raise CardDeclinedError("stolen card")
        if attempt == 1:
            raise RetryAfter("200ms", "503 from the bank")
        return f"ref-{key[:8]}"


@app.job(queue="payments", key="order_id", timeout="30s", retry=Retry(max_attempts=5, give_up_on=CardDeclinedError))
async def charge_payment(ctx: Context, order_id: int, cents: int, bank: Annotated[Bank, Provide(Bank)] = provided) -> Receipt:
    reference = await bank.charge(str(ctx.job_id), cents, ctx.attempt)
    async with ctx.transaction(async_sessions) as session:  # committed with the receipt and the completion, or not at all
        await session.execute(update(Order).where(Order.id == order_id).values(state="paid"))
        await send_mail.using(conn=session).enqueue(f"order {order_id} is paid")
    return Receipt(order_id=order_id, reference=reference, attempts=ctx.attempt)


@app.job(queue="mail", rate=Rate(5, "1s"), expires="1d")
async def send_mail(text: str) -> str:
    return f"sent: {text}"


@app.job(queue="reports", run_in="process", timeout="1m")
def make_report(ctx: Context, order_id: int, pages: int = 5) -> str:
    digest = b"%d" % order_id
    for page in range(pages):
        digest = hashlib.pbkdf2_hmac("sha256", digest + b"%d" % page, b"salt", 20_000)
        ctx.progress(100 * (page + 1) / pages, f"page {page + 1} of {pages}")
    return digest.hex()


@app.job(queue="imports", concurrency=Limit(1, per="tenant"))
def import_csv(ctx: Context, tenant: str, text: str, pause: float = 0.0) -> int:
    rows = list(csv.DictReader(io.StringIO(text)))
    for number, _ in enumerate(rows, 1):
        if ctx.signal.wait_sync(timeout=pause):
            ctx.signal.check()
        ctx.progress(100 * number / len(rows), f"row {number} of {len(rows)}")
    ctx.log.info("imported", tenant=tenant, rows=len(rows))
    return len(rows)


@app.job(queue="payments")
async def write_once(ctx: Context, order_id: int) -> int:
    async with ctx.transaction(async_sessions) as session:
        session.add(LedgerEntry(order_id=order_id, fence=ctx.fence))
    return ctx.fence


@app.cron("0 3 * * *", timezone="Europe/Berlin")
@app.job
async def count_new_orders(session: Annotated[AsyncSession, Provide(get_async_session)] = provided) -> int:
    return len((await session.scalars(select(Order.id).where(Order.state == "new"))).all())


@app.job(max_attempts=1)
async def check_card(number: str) -> bool | Fail:
    return Fail("this card has been stolen") if number == "13" else True
