"""Records every call that changes something: who asked for what, before it is done, and what came of it."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tenure.model.errors import TenureError
from tenure.model.payloads import TOO_DEEP, clean_text
from tenure.store import audit
from tenure.store.audit import AuditEntry, AuditSource, Phase
from tenure.store.query import Fetch
from tenure.web.security.redaction import Redaction

log = logging.getLogger("tenure")

LARGEST_GROUP = 500  # entries in a statement
LONGEST_NAME = 300  # characters of an actor or a subject
LARGEST_ENTRY = 16 * 1024  # characters of a request, or of a state before or after it


class AuditLog:
    """Entries of concurrent calls are written by one statement."""

    def __init__(self, write: Fetch) -> None:
        self._write = write
        self._waiting: list[tuple[AuditEntry, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def record(self, entry: AuditEntry) -> None:
        """Returns when the entry is stored. Raises if that is not possible."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, done))
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_all())
        await done

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:LARGEST_GROUP], self._waiting[LARGEST_GROUP:]
                try:
                    await self._write(audit.write(entry for entry, _ in group))
                except Exception as error:  # noqa: BLE001 - each caller raises it
                    _settle(group, error)
                else:
                    _settle(group, None)
        finally:
            self._writer = None
            _settle(self._waiting, ConnectionError("the server stops"))
            self._waiting = []


def _settle(group: list[tuple[AuditEntry, asyncio.Future[None]]], error: Exception | None) -> None:
    for _, done in group:
        if not done.done():
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)


@dataclass(slots=True, kw_only=True)
class AuditTrail:
    """The entries of one call. Its handler adds the subject before and after the change."""

    log: AuditLog
    redaction: Redaction
    request_id: str
    actor: str
    ip: str
    source: AuditSource
    action: str
    subject: str | None = None
    request: Any = None
    before: Any = None
    after: Any = None
    only_after: bool = False
    """Only one entry is written, afterwards: the change itself names the actor."""

    async def requested(self) -> None:
        """Before anything is changed: what cannot be recorded is not done."""
        await self.log.record(self._entry("requested"))

    async def finished(self, status: int) -> None:
        """Afterwards. If this fails, the first entry remains, and the answer is not held back."""
        try:
            await self.log.record(self._entry("finished", status))
        except (TenureError, ConnectionError) as error:
            log.error(  # noqa: TRY400 - the message of PostgreSQL is enough
                "audit entry not written",
                extra={"action": self.action, "request_id": self.request_id, "error": str(error)},
            )

    def _entry(self, phase: Phase, status: int | None = None) -> AuditEntry:
        return AuditEntry(
            request_id=self.request_id,
            phase=phase,
            actor=clean_text(self.actor, LONGEST_NAME),
            ip=self.ip,
            source=self.source,
            action=self.action,
            subject=None if self.subject is None else clean_text(self.subject, LONGEST_NAME),
            request=self._shown(self.request) if phase == "requested" or self.only_after else None,
            before=self._shown(self.before),
            after=self._shown(self.after),
            status=status,
        )

    def _shown(self, value: Any) -> Any:
        """Without secrets, and as PostgreSQL can store it."""
        if value is None:
            return None
        try:
            shown = self.redaction.hide(_storable(value))
        except RecursionError:
            return TOO_DEEP
        size = len(json.dumps(shown))
        return shown if size <= LARGEST_ENTRY else {"omitted": f"{size} characters"}


def _storable(value: Any) -> Any:
    """Plain JSON; what is of another type, such as a time, as text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {clean_text(str(name), LARGEST_ENTRY): _storable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return clean_text(value.isoformat() if isinstance(value, datetime) else str(value), LARGEST_ENTRY)
