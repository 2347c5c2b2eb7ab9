"""An app as users write it: what the tests of the toolkit test."""

from __future__ import annotations

from datetime import datetime

from tenure import Context, Continue, Rate, Retry, Snooze, Tenure

app = Tenure(name="toolkit-shop", log_failed_attempt="debug", log_dead_letter="debug")
DONE: list[object] = []


@app.job(queue="mail")
async def send_mail(to: str, text: str = "") -> str:
    DONE.append(("mail", to))
    return f"sent to {to}"


@app.job(queue="payments", key="order_id", retry=Retry(max_attempts=3, initial="1h", max_backoff="1h", jitter=False))
async def charge(ctx: Context, order_id: int, fails: int = 0) -> int:
    DONE.append(("charge", order_id, ctx.attempt))
    if ctx.attempt <= fails:
        raise ConnectionError("the bank did not answer")
    await send_mail.enqueue(f"customer of {order_id}")
    return order_id * 100


@app.job
def import_rows(ctx: Context, rows: list[int]) -> int:
    for number, row in enumerate(rows, 1):
        ctx.progress(100 * number / len(rows), f"row {row}")
    ctx.log.info("imported", rows=len(rows))
    return sum(rows)


@app.job(rate=Rate(2, "1h"))
async def call_api(n: int) -> int:
    return n


@app.job
async def wait_for(ctx: Context, until: str) -> str:
    if ctx.fence == 1:
        raise Snooze("1h")
    return until


@app.cron("0 3 * * *", timezone="UTC")
@app.job
async def nightly(ctx: Context) -> datetime | None:
    DONE.append(("nightly", ctx.scheduled_for, ctx.is_late))
    return ctx.scheduled_for


@app.job
async def first_link(left: int) -> str | Continue[str]:
    return Continue(first_link, left - 1) if left else "done"


@app.job
async def endless() -> None:
    await endless.enqueue()


@app.job
async def hang(ctx: Context) -> None:
    await ctx.signal.wait()


@app.job(lease="1m")
async def leased(ctx: Context) -> int:
    DONE.append(("leased", ctx.fence))
    return ctx.fence
