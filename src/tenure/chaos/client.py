"""A client process: `python -m tenure.chaos.client TASK`, with the task as JSON. Says twice a second how far it is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

from tenure.chaos import work
from tenure.chaos.load import Load, Task
from tenure.lifeline import die_with
from tenure.manager.loops import run_loop

TELL_EVERY = 0.5


async def serve(load: Load) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, load.finish)
    telling = asyncio.create_task(_tell_on(load))
    try:
        await load.run()
    finally:
        telling.cancel()
        await work.app.close()
    _tell(load)


async def _tell_on(load: Load) -> None:
    while True:
        _tell(load)
        await asyncio.sleep(TELL_EVERY)


def _tell(load: Load) -> None:
    print(json.dumps({"accepted": load.accepted, "calls": load.calls, "surprises": load.surprises}), flush=True)  # noqa: T201


def main() -> None:
    die_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the campaign, which ends us
    task = Task(**json.loads(sys.argv[2]))
    work.app.configure(dsn=task.dsn)
    os.environ["TENURE_LOG"] = "error"
    run_loop(serve(Load(task)))


if __name__ == "__main__":
    main()
