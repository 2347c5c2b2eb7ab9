"""Sending a group of things together, and finding the one that PostgreSQL refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenure.store.faults import FailedInside, Refused

Item = TypeVar("Item")


async def send_or_halve(
    group: list[Item],
    send: Callable[[list[Item]], Awaitable[None]],
    refused: Callable[[Item, Refused], Awaitable[None]],
) -> None:
    """Halves a refused group until the one bad item stands alone; all the others go through."""
    try:
        await send(group)
    except (Refused, FailedInside) as error:
        if not group:  # it is not a matter of single items
            raise
        if len(group) == 1:
            await refused(group[0], error.refusal if isinstance(error, FailedInside) else error)
            return
        middle = len(group) // 2
        await send_or_halve(group[:middle], send, refused)
        await send_or_halve(group[middle:], send, refused)
