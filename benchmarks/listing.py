"""(l) A page of jobs, by this filter and that, out of millions of finished ones."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from hashlib import md5
from uuid import UUID

from tenure import Tenure
from tenure.client.client import Client
from tenure.client.filters import FilterWords
from tenure.client.pages import Page

TIMES = 9  # the median counts

FILTERS: dict[str, FilterWords] = {
    "none": {},
    "kind": {"kind": "thumbnail"},
    "rare kind": {"kind": "audit"},
    "state": {"state": "failed"},
    "state, rare kind": {"state": "failed", "kind": "audit"},
    "queue": {"queue": "default"},
    "rare queue": {"queue": "seldom"},
    "key": {"key": "account-7"},
    "key, kind": {"key": "account-7", "kind": "invoice"},
    "parent": {"parent": UUID(md5(b"batch0").hexdigest())},
    "kind, frequent input": {"kind": "mail", "input": {"region": "eu"}},
    "kind, rare input": {"kind": "mail", "input": {"user": 12346}},
}

app = Tenure()


def measure(dsn: str) -> dict[str, float]:
    """Milliseconds by filter, of its first or its second page: the slower one."""
    return asyncio.run(_measure(dsn))


async def _measure(dsn: str) -> dict[str, float]:
    app.configure(dsn=dsn)
    client, took = app.client(), defaultdict[str, list[list[float]]](lambda: [[], []])
    for _ in range(TIMES):
        for name, filters in FILTERS.items():
            page = await _timed(client, None, filters, took[name][0])
            if not page.jobs and page.next is None:
                raise RuntimeError(f"no job fits the filter {name!r}: there is nothing to measure")
            if page.next is not None:
                await _timed(client, page.next, filters, took[name][1])
    await app.close()
    return {name: max(statistics.median(page) for page in pages if page) for name, pages in took.items()}


async def _timed(client: Client, after: str | None, filters: FilterWords, took: list[float]) -> Page:
    began = time.perf_counter()
    page = await client.list(after=after, **filters)
    took.append((time.perf_counter() - began) * 1000)
    return page
