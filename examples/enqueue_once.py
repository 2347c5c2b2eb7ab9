"""An idempotency key: the same payment is enqueued once, even if the request is repeated."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tenure import Tenure
from tenure.embedded import EmbeddedServer

app = Tenure()


@dataclass
class Payment:
    id: str
    cents: int


@app.job(key="payment.id")  # a path that starts at a parameter; the key is kept forever
async def book_payment(payment: Payment) -> int:
    return payment.cents


@app.job
async def rebuild_index(table: str) -> str:
    return table


async def main() -> None:
    await app.migrate()
    payment = Payment(id=uuid4().hex, cents=500)
    first = await book_payment.enqueue(payment)
    again = await book_payment.enqueue(payment)  # the client retried its request
    print(f"the same job: {again.id == first.id}, it existed before: {again.existed}")

    # A key for one call, until that job is finished.
    rebuild = rebuild_index.using(key="rebuild users", key_for="live")
    handles = [await rebuild.enqueue("users") for _ in range(3)]

    async with app.running():
        booked = await again.result(timeout="30s")
        print(f"{booked} cents booked, {await handles[0].result(timeout='30s')} rebuilt")

    assert again.id == first.id
    assert booked == 500
    assert len({handle.id for handle in handles}) == 1


if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
