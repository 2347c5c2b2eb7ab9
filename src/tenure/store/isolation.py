"""Batches in which PostgreSQL refuses a row: that row is found and skipped, and all others are processed.

A refusal may have any reason: a trigger of the user's, a value that is too large for an index, a constraint. It may be gone in a
moment or never, so the time until the row is tried again grows from seconds to minutes. The statement of a
batch takes `only` (the rows to which it is restricted) and `peek` (change nothing, return the rows that would be taken), so the
refused row can be found by halving.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from tenure.store.faults import FailedInside, Refused
from tenure.store.query import ALL, Pick

log = logging.getLogger("tenure")


class Peekable(Protocol):
    """The answer to a batch statement, as its row declares it."""

    @property
    def peeked(self) -> list[str]:
        """The rows that would be taken, if the statement was asked to peek."""


Answer = TypeVar("Answer", bound=Peekable)

FIRST_AGAIN, AGAIN_AFTER = 2.0, 300.0
"""Seconds until a refused row is tried again for the first time. Doubled each time, up to the second number."""

MOST_REMEMBERED = 10_000
"""Refused rows that are left out by name. Beyond that the oldest are only counted: that many rows at the head of the next batches
are passed over."""

MOST_AT_ONCE = 50
"""Rows that one call isolates; the others have their turn in the next round."""

MOST_REPORTED = 10
"""Rows that one call reports one by one; the rest of them as a number."""


class RefusedRows:
    """The rows of one batch statement that PostgreSQL refused: reported once, and tried again later."""

    def __init__(self, what: str, field: str = "job_id") -> None:
        """For the log: what PostgreSQL refuses, such as "to promote a job", and the field that names the row."""
        self._what = f"PostgreSQL refuses {what}: it is left out, and tried again after a pause that grows to 5 minutes"
        self._field = field
        self._again_at: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        """Seconds for which each was skipped last."""
        self._forgotten = 0
        """Refused rows that are no longer remembered by name."""
        self._forgotten_until = 0.0

    @property
    def leaves_out(self) -> bool:
        """Whether there are refused rows that wait for their next try."""
        return bool(self._skipped()) or self._passed_over() > 0

    async def run(self, send: Callable[[Pick], Awaitable[Answer]]) -> list[Answer]:
        """Sends the whole batch, or, where a row of it is refused, all the others. At least one answer. Raises `Refused` when it
        is not a matter of single rows."""
        skipped, forgotten = self._skipped(), self._passed_over()
        if not skipped and not forgotten:
            try:
                return [await send(ALL)]
            except (Refused, FailedInside):
                pass
        peek = await send(Pick(peek=True, more=len(skipped) + forgotten))
        return await self._by_halves([row for row in peek.peeked if row not in skipped][forgotten:], send)

    async def _by_halves(self, rows: list[str], send: Callable[[Pick], Awaitable[Answer]]) -> list[Answer]:
        answers: list[Answer] = []
        refused: dict[str, Refused] = {}
        groups = [rows]
        while groups and len(refused) < MOST_AT_ONCE:
            group = groups.pop()
            try:
                answers.append(await send(Pick(only=tuple(group))))
            except (Refused, FailedInside) as error:
                if len(group) > 1:
                    middle = len(group) // 2
                    groups += [group[middle:], group[:middle]]
                    continue
                if not answers:
                    # Refused without any row as well: then it is not a matter of rows, and raised.
                    answers.append(await send(Pick(only=())))
                refused |= dict.fromkeys(group, error.refusal if isinstance(error, FailedInside) else error)
            else:
                for row in group:
                    self._again_at.pop(row, None)
                    self._pauses.pop(row, None)
        self._remember(refused)
        return answers

    def _skipped(self) -> set[str]:
        now = time.monotonic()
        return {row for row, again_at in self._again_at.items() if again_at > now}

    def _passed_over(self) -> int:
        """How many rows at the head are passed over, because the oldest refused rows are there."""
        if time.monotonic() >= self._forgotten_until:
            self._forgotten = 0
        return self._forgotten

    def _forget_oldest(self) -> None:
        now = time.monotonic()
        for row in list(self._again_at)[: max(0, len(self._again_at) - MOST_REMEMBERED)]:
            self._pauses.pop(row, None)
            if self._again_at.pop(row) > now:
                self._forgotten_until = self._forgotten_until if self._forgotten else now + AGAIN_AFTER
                self._forgotten += 1

    def _remember(self, refused: dict[str, Refused]) -> None:
        new = [row for row in refused if row not in self._again_at]
        for row in refused:
            self._again_at.pop(row, None)  # to the end: the oldest are forgotten first
            self._pauses[row] = min(AGAIN_AFTER, 2 * self._pauses[row] if row in self._pauses else FIRST_AGAIN)
            self._again_at[row] = time.monotonic() + self._pauses[row]
        self._forget_oldest()
        for row in new[:MOST_REPORTED]:
            error = refused[row]
            log.error(self._what, extra={self._field: row, "sqlstate": error.sqlstate, "error": str(error)})
        if len(new) > MOST_REPORTED:
            log.error(self._what, extra={"more": len(new) - MOST_REPORTED})
