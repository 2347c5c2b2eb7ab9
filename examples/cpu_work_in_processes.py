"""Run CPU-bound handlers in processes of their own, so that they neither block the event loop nor share its GIL."""

import asyncio
import os
from pathlib import Path

from tenure import Context, Tenure
from tenure.embedded import EmbeddedServer

app = Tenure()


@app.job(run_in="process", timeout="1m")
def count_primes(ctx: Context, below: int) -> tuple[int, int]:
    """Returns the number of primes, and the process that counted them."""
    sieve = bytearray([1]) * below
    sieve[:2] = b"\x00\x00"
    for number in range(2, int(below**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, below, number)))
        ctx.progress(100 * number / below**0.5)
    return sum(sieve), os.getpid()


async def main() -> None:
    await app.migrate()
    async with app.running(concurrency=2):  # at most two processes
        handles = await app.enqueue_many([count_primes.call(below) for below in (10, 1_000, 100_000)])
        counted = [await handle.result(timeout="60s") for handle in handles]

    primes = [count for count, _ in counted]
    print(f"{primes} primes, counted in processes {sorted({pid for _, pid in counted})}; this one is {os.getpid()}")
    assert primes == [4, 168, 9592]
    assert os.getpid() not in {pid for _, pid in counted}


# The processes import this file to find the job: what starts the program must be below this line.
if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
