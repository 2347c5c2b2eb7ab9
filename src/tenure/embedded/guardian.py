"""Stops the server when no process holds it any more, even if the last holders were killed.

Runs as its own process (`run_guardian.py`), which survives the death of any holder. One per home: it holds
`guardian.lock` while it runs. It decides to end only under the home's lock, and releases `guardian.lock` before that: a
process that joins finds either a guardian that stays, or none and starts one.
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

CHECK_EVERY = 0.3  # seconds
GRACE = 2.0  # seconds without a holder; a program that restarts at once keeps its server


class Guardian:
    def __init__(self, home: Home, guarding: int) -> None:
        self.home = home
        self.guarding = guarding
        self.seen: Postmaster | None = None
        self.needed_at = time.monotonic()

    def watch(self) -> None:
        while not (self._is_idle() and self._shut_down()):
            time.sleep(CHECK_EVERY)

    def _is_idle(self) -> bool:
        running = find_postmaster(self.home.data)
        if running and self.home.holders.alive():
            self.seen, self.needed_at = running, time.monotonic()
            return False
        if running is None and (self.seen or not self.home.holders.recorded()):
            return True
        # A holder that was killed may have started a server that is not visible yet.
        return time.monotonic() - self.needed_at >= GRACE

    def _shut_down(self) -> bool:
        try:
            with self.home.lock():
                if find_postmaster(self.home.data) and self.home.holders.alive():
                    return False
                shut_down(self.home.data)
                fcntl.flock(self.guarding, fcntl.LOCK_UN)
        except FileNotFoundError:
            # The home was removed while the server was running.
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
        log.info("the server's folder does not exist any more: %s", home.folder)
