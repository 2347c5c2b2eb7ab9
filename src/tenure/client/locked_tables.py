"""Which sessions have locked our tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.model.findings import Finding
from tenure.model.health_sessions import LockedTables
from tenure.store import reports

if TYPE_CHECKING:
    from tenure.client.session import Session


async def locked_tables(session: Session) -> list[Finding]:
    """Waits for no lock itself."""
    return [LockedTables(**row._asdict()).finding for row in await session.fetch(reports.find_locked_tables())]
