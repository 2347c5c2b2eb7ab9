"""Who uses the server now. Several holders may live in one process; each counts.

Writes happen under the home's lock; reading needs none, because the file is replaced whole.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tenure.embedded.processes import start_time


@dataclass(frozen=True)
class Holder:
    id: str
    pid: int
    started: str

    @property
    def alive(self) -> bool:
        return start_time(self.pid) == self.started


class Holders:
    def __init__(self, file: Path) -> None:
        self.file = file

    def alive(self) -> list[Holder]:
        return [holder for holder in self.noted() if holder.alive]

    def add(self, holder_id: str) -> None:
        """Notes this process as a holder. The dead are forgotten on the way."""
        me = Holder(holder_id, os.getpid(), start_time(os.getpid()) or "")
        self._write([*self._others(holder_id), me])

    def remove(self, holder_id: str) -> None:
        self._write(self._others(holder_id))

    def _others(self, holder_id: str) -> list[Holder]:
        return [holder for holder in self.alive() if holder.id != holder_id]

    def noted(self) -> list[Holder]:
        try:
            return [Holder(**noted) for noted in json.loads(self.file.read_text())]
        except (OSError, ValueError, TypeError):
            # Missing, or torn by a power failure: those who wrote it are gone as well.
            return []

    def _write(self, holders: list[Holder]) -> None:
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps([asdict(holder) for holder in holders], indent=1))
        draft.replace(self.file)
