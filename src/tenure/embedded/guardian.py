"""Stops the server when nobody holds it any more, not even somebody who could still say goodbye.

Runs as a process of its own (`run_guardian.py`), which no holder's death takes along. One per home: it keeps
`guardian.lock` while it guards. It decides to leave only under the home's lock, and gives `guardian.lock` back before
the home's: whoever enters finds either a guardian that stays, or none and starts one.
"""

from __future__ import annotations

import fcntl
import logging
import time
from pathlib import Path

from tenure.embedded.home import Home, open_lock, try_lock
from tenure.embedded.launch import shut_down
from tenure.embedded.postmaster import Postmaster, find_postmaster, stop_postmaster
from tenure.model.errors import ConfigError

log = logging.getLogger("tenure.embedded")

LOOK_EVERY = 0.3  # seconds
GRACE = 2.0  # seconds without a holder; a program that restarts at once keeps its server


class Guardian:
    def __init__(self, home: Home, guarding: int) -> None:
        self.home = home
        self.guarding = guarding
        self.seen: Postmaster | None = None
        self.needed_at = time.monotonic()

    def watch(self) -> None:
        while not (self._is_idle() and self._leave()):
            time.sleep(LOOK_EVERY)

    def _is_idle(self) -> bool:
        running = find_postmaster(self.home.data)
        if running and self.home.holders.alive():
            self.seen, self.needed_at = running, time.monotonic()
            return False
        if running is None and (self.seen or not self.home.holders.noted()):
            return True
        # A holder that died without a goodbye may have started a server that is not to be seen yet.
        return time.monotonic() - self.needed_at >= GRACE

    def _leave(self) -> bool:
        try:
            with self.home.lock():
                if find_postmaster(self.home.data) and self.home.holders.alive():
                    return False
                shut_down(self.home.data)
                fcntl.flock(self.guarding, fcntl.LOCK_UN)
        except FileNotFoundError:
            # Somebody removed the home under a running server.
            if self.seen:
                stop_postmaster(self.seen)
        except ConfigError as error:
            log.warning("%s", error)
            return False
        return True


def main(folder: Path) -> None:
    logging.basicConfig(format="%(asctime)s guardian: %(message)s", level=logging.INFO)
    home = Home(folder)
    try:
        with open_lock(home.guardian_lock) as guarding:
            if try_lock(guarding):
                Guardian(home, guarding).watch()
    except FileNotFoundError:
        log.info("%s is gone", home.folder)
