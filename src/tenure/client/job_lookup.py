"""Finds a job by its id or by a unique prefix of it."""

from __future__ import annotations

from string import hexdigits
from typing import TYPE_CHECKING
from uuid import UUID

from tenure.client.report.words import inline
from tenure.model.errors import ConfigError, JobNotFound

if TYPE_CHECKING:
    from tenure.client.client import Client
    from tenure.client.status import JobStatus

SHORTEST_PREFIX = 8
"""Hex digits. An id starts with the time it was made at; eight digits narrow that down to about a minute."""

DIGITS = 32  # in a complete id

MOST_NAMED = 5
"""Jobs that the error for an ambiguous prefix lists."""


class NoSuchJob(JobNotFound):
    """No job id starts with the given prefix."""

    def _message(self) -> str:
        return f"no job id starts with {self.job_id!r}: the job was deleted, or its retention is over"


async def find_job(client: Client, text: str) -> JobStatus:
    """Raises `JobNotFound`, or `ConfigError` for text that is not an id or a prefix shared by several jobs."""
    try:
        whole = UUID(text)
    except ValueError:
        return await _find_by_prefix(client, text)
    job = await client.find(whole)
    if job is None:
        raise JobNotFound(whole)
    return job


async def _find_by_prefix(client: Client, prefix: str) -> JobStatus:
    first, beyond = _id_range(prefix)
    found: list[JobStatus] = []
    after: str | None = None if beyond >= 1 << 128 else str(UUID(int=beyond))
    while len(found) <= MOST_NAMED:
        page = await client.list(limit=MOST_NAMED + 1, after=after)
        found += [job for job in page.jobs if job.id.int >= first]
        after = page.next
        if after is None or UUID(after).int < first:
            break
    if not found:
        raise NoSuchJob(prefix)
    if len(found) > 1:
        raise ConfigError(_several(prefix, found))
    return found[0]


def _several(prefix: str, found: list[JobStatus]) -> str:
    """Ids begin with the time, so jobs of the same minute share their first 8 digits: the newest are listed to choose from."""
    named = "".join(f"\n  {job.id}  {job.state}  {inline(job.kind)}" for job in found[:MOST_NAMED])
    more = f" (the newest {MOST_NAMED} are shown)" if len(found) > MOST_NAMED else ""
    return f"several job ids start with {prefix!r}: give more of the id{more}{named}"


def _id_range(prefix: str) -> tuple[int, int]:
    """The first id with this prefix, and the first one after all of them."""
    digits = prefix.replace("-", "")
    if not (set(digits) <= set(hexdigits) and SHORTEST_PREFIX <= len(digits) < DIGITS):
        raise ConfigError(f"{prefix!r} is not a job id: give all of it, or at least its first {SHORTEST_PREFIX} characters")
    number, missing = int(digits, 16), 4 * (DIGITS - len(digits))
    return number << missing, (number + 1) << missing
