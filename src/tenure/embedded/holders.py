"""The holders that use the server. One process may contain several; each counts.

Writes need the home's lock; reads do not, because the file is replaced as a whole.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tenure.embedded.processes import start_time


@dataclass(frozen=True)
class ServerHolder:
    id: str
    pid: int
    started: str

    @property
    def alive(self) -> bool:
        return start_time(self.pid) == self.started


class Holders:
    def __init__(self, file: Path) -> None:
        self.file = file

    def alive(self) -> list[ServerHolder]:
        return [holder for holder in self.recorded() if holder.alive]

    def add(self, holder_id: str) -> None:
        """Records this process as a holder, and removes dead ones."""
        me = ServerHolder(holder_id, os.getpid(), start_time(os.getpid()) or "")
        self._write([*self._others(holder_id), me])

    def remove(self, holder_id: str) -> None:
        self._write(self._others(holder_id))

    def _others(self, holder_id: str) -> list[ServerHolder]:
        return [holder for holder in self.alive() if holder.id != holder_id]

    def recorded(self) -> list[ServerHolder]:
        try:
            return [ServerHolder(**fields) for fields in json.loads(self.file.read_text())]
        except (OSError, ValueError, TypeError):
            # Missing, or damaged by a power failure, which ended the holders as well.
            return []

    def _write(self, holders: list[ServerHolder]) -> None:
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps([asdict(holder) for holder in holders], indent=1))
        draft.replace(self.file)
