"""Limit how many jobs run at once, in total and per tenant, across all workers."""

import asyncio
from collections import Counter
from pathlib import Path

from tenure import Limit, Tenure
from tenure.embedded import EmbeddedServer

app = Tenure()
running: Counter[str] = Counter()
most: Counter[str] = Counter()


@app.job(concurrency=[Limit(4), Limit(1, per="tenant_id")])  # also: rate=Rate(100, "1m"), fair_by="tenant_id"
async def import_file(tenant_id: str, path: str) -> str:
    for counted in (tenant_id, "all tenants"):
        running[counted] += 1
        most[counted] = max(most[counted], running[counted])
    await asyncio.sleep(0.05)
    running.subtract([tenant_id, "all tenants"])
    return path


async def main() -> None:
    await app.migrate()
    calls = [import_file.call(tenant, f"{tenant}-{n}.csv") for tenant in ("acme", "globex", "initech") for n in range(5)]
    async with app.running(concurrency=10):
        for handle in await app.enqueue_many(calls):
            await handle.result(timeout="60s")

    print(f"most at once: {dict(most)}")
    assert all(most[tenant] == 1 for tenant in ("acme", "globex", "initech"))
    assert most["all tenants"] <= 4


if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
