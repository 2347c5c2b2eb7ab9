"""A round of several parts: one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenure.leader.duties.duty import TermOver
from tenure.model.errors import StoreUnavailable
from tenure.store.duty_link import Contended

Result = TypeVar("Result")


class Parts:
    def __init__(self) -> None:
        self.failures: dict[str, Exception] = {}
        """By the name of the part."""

    async def do(self, name: str, work: Callable[[], Awaitable[Result]]) -> Result | None:
        """None if it failed. An outage of PostgreSQL and the end of the term are not failures of the part: they are raised."""
        try:
            return await work()
        except Contended as error:
            self.failures[name] = error
        except (StoreUnavailable, TermOver):
            raise
        except Exception as error:  # noqa: BLE001 - any error affects only this part
            self.failures[name] = error
        return None

    def raise_first(self) -> None:
        for error in self.failures.values():
            raise error
