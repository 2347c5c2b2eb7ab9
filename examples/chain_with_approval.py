"""A chain whose second link is decided by a person, and a job that waits for several chains.

python examples/chain_with_approval.py
"""

from __future__ import annotations

import asyncio

from tenure import Context, Continue, Tenure

app = Tenure()


@app.job
async def draft_offer(customer: str, euros: int) -> str | Continue[str]:
    """Small offers are sent at once; for large ones a person decides. No worker knows how to run `approve_offer`."""
    if euros < 1000:
        return f"offer to {customer}: {euros} EUR"
    return Continue(approve_offer, customer, euros)


@app.job(queue="people")
async def approve_offer(customer: str, euros: int) -> str:
    raise NotImplementedError("a person completes this job: app.chains.complete(chain, text)")


@app.job
async def weekly_mail(ctx: Context) -> list[str]:
    """Runs when all offers are decided."""
    return ctx.blockers


async def main() -> None:
    await app.migrate()
    async with app.running(queues=["default"]):
        offers = [await draft_offer.enqueue(customer, euros) for customer, euros in (("Ann", 200), ("Bob", 5000))]
        mail = await weekly_mail.using(after=offers).enqueue()

        async for _ in offers[1].watch():  # until this link is over; the chain continues
            pass
        print((await mail.explain()).reasons[0].text)
        # The webhook of your approval tool, or `tenure chains complete ID --output '"..."'`.
        await app.chains.complete(offers[1], "offer to Bob: 4500 EUR", by="carol")

        sent = await mail.result(timeout="30s")
        print(sent)
        assert sent == ["offer to Ann: 200 EUR", "offer to Bob: 4500 EUR"]
    await app.close()


if __name__ == "__main__":
    asyncio.run(main())
