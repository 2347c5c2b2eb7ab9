"""The thread that checks large arguments. There is one for all: what it computes slows the event loop down, and more of them
would stop it. A check may take seconds, so each caller may have only one that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TypeVar

from tenure.web.security.rate_limits import too_many

T = TypeVar("T")

caller: ContextVar[str] = ContextVar("caller", default="")
"""For whom a request is answered: the account of its principal."""


class CheckThread:
    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "tenure-check")
        self._waiting: dict[str, object] = {}
        """By account: the check that has not begun yet."""

    async def run(self, check: Callable[[], T], within: float) -> T:
        """Raises a problem if the caller has another check that waits. `within`: the seconds that a check may take."""
        account, turn = caller.get(), object()
        if self._waiting.setdefault(account, turn) is not turn:
            raise too_many("other arguments that you have sent wait to be checked", within)

        def begin() -> T:
            self._leave(account, turn)
            return check()

        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, begin)
        finally:
            self._leave(account, turn)  # also if it was canceled before it began

    def _leave(self, account: str, turn: object) -> None:
        if self._waiting.get(account) is turn:
            self._waiting.pop(account, None)  # the thread and the event loop may do this at the same time
