"""A client under load: copied as `client.py` into the project folder. Enqueues until the file `NAME.stop` is there.

It writes the ids of accepted jobs to the file `NAME.ids`, and ends with an error at the first job that is not accepted.
"""

import asyncio
import sys
from pathlib import Path

from jobs import app, calls

PAUSE = 0.1


async def main(name: str) -> None:
    stop, n = Path(f"{name}.stop"), 0
    with Path(f"{name}.ids").open("a", buffering=1) as accepted:  # noqa: ASYNC230 - a file of the test
        while not stop.exists():  # noqa: ASYNC240
            n += 1
            accepted.writelines(f"{handle.id}\n" for handle in await app.enqueue_many(calls(name, n)))
            await asyncio.sleep(PAUSE)
    await app.close()


asyncio.run(main(sys.argv[1]))
