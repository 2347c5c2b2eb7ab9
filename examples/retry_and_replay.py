"""A job that fails is retried. After its last attempt it is dead-lettered, and can be replayed with other input."""

import asyncio
from pathlib import Path

from tenure import Context, Fail, JobFailed, Retry, Tenure
from tenure.embedded import EmbeddedServer

app = Tenure(log_failed_attempt="info", log_dead_letter="info")  # by default a warning and an error, with the traceback


@app.job(retry=Retry(max_attempts=3, initial="100ms", max_backoff="1s"))
async def charge_card(ctx: Context, order: int) -> str:
    if ctx.attempt < 3:
        raise ConnectionError("the bank did not answer")
    return f"order {order} charged at attempt {ctx.attempt}"


@app.job(retry=Retry(max_attempts=2, initial="100ms"))
async def send_invoice(address: str) -> str:
    if address.endswith("@exmaple.org"):
        raise LookupError(f"{address}: unknown domain")
    return f"invoice sent to {address}"


@app.job
async def check_card(number: str) -> bool | Fail:
    return Fail("the card was reported stolen") if number == "13" else True  # no retry would help


async def main() -> None:
    await app.migrate()
    async with app.running():
        handle = await charge_card.enqueue(7)
        charged = await handle.result(timeout="30s")
        print(charged)

        invoice = await send_invoice.enqueue("ada@exmaple.org")
        try:
            await invoice.result(timeout="30s")
        except JobFailed as failed:
            print(failed.state, failed.error_type, failed.error_message)

        await app.client().replay(invoice.id, input={"address": "ada@example.org"}, by="ann")
        sent = await invoice.result(timeout="30s")
        print(sent)

        try:
            await (await check_card.enqueue("13")).result(timeout="30s")
        except JobFailed as failed:
            print(failed.state, failed.error_message)
            state = failed.state

    assert charged == "order 7 charged at attempt 3"
    assert sent == "invoice sent to ada@example.org"
    assert state == "failed"


if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
