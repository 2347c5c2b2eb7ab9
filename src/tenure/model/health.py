"""Health checks: from facts to findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tenure.model.findings import Finding

NOTIFY_NOT_DELIVERED = Finding(
    "notify_not_delivered",
    "NOTIFY does not arrive, probably because of a pooler in transaction mode: new jobs wait for the next poll",
    "set listen_dsn to a direct connection to PostgreSQL",
)


class Fact(Protocol):
    """A fact that was read, and its findings."""

    def findings(self) -> Iterator[Finding]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The facts of one check of PostgreSQL."""

    facts: Sequence[Fact] = ()
    unseen: Sequence[str] = ()
    """Checks that could not be made, each with the reason."""
    not_delivering: bool = False
    """Notifications do not arrive."""

    @property
    def findings(self) -> list[Finding]:
        """What needs attention, and what to do about it."""
        found = [finding for fact in self.facts for finding in fact.findings()]
        return found + ([NOTIFY_NOT_DELIVERED] if self.not_delivering else []) + list(self._unseen())

    def _unseen(self) -> Iterator[Finding]:
        if self.unseen:
            yield Finding(
                "unseen",
                f"some checks could not be made: {'; '.join(self.unseen)}",
                "run them with an account that has the privileges: `tenure sql --roles` prints the grants",
                severity="note",
            )
