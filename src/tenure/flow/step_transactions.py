"""Steps that are exactly once in the user's database: what the step writes and its result commit together, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tenure.flow.step_functions import StepFunction
from tenure.model.errors import LeaseLost, StoreUnavailable
from tenure.model.payloads import Json
from tenure.store.steps import StepResult

if TYPE_CHECKING:
    from tenure.worker.run.run import Run
    from tenure.worker.run.services import LoopServices
    from tenure.worker.run.transaction_block import TransactionBlock


class StepTransaction:
    """One try of a step in a transaction."""

    def __init__(self, run: Run, services: LoopServices, session: object | None, result: Callable[[Json], StepResult]) -> None:
        """`result(output)` is what is stored about the step."""
        self._run = run
        self._services = services
        self._session = session
        self._result = result

    async def call(self, function: StepFunction, args: tuple[Any, ...]) -> Any:
        """Calls `fn(connection, *args)`. Returns its result as a later run would get it."""
        try:
            if function.is_async:
                return await self._on_loop(function, args)
            in_thread = partial(self._in_thread, function, args)
            return await asyncio.get_running_loop().run_in_executor(self._services.threads, in_thread)
        except (StoreUnavailable, AlreadyRecorded) as error:
            # The COMMIT may have happened although it was not answered: then the result is stored.
            rows = await self._services.steps.load(self._run)
            name = self._result("null").name
            if (row := next((row for row in rows if row.name == name and row.state == "done"), None)) is not None:
                return function.decode(row.output)
            if isinstance(error, AlreadyRecorded):
                self._services.steps.check_stored(self._run, rows)
                raise LeaseLost(self._run.job_uuid, "taken_by_another_worker") from None
            raise

    async def _on_loop(self, function: StepFunction, args: tuple[Any, ...]) -> Any:
        transaction = await self._block().open()
        try:
            value = await function.fn(transaction.connection, *args)
            text = function.encode(value)
        except BaseException:
            await transaction.rollback()
            raise
        if not await transaction.commit_step(self._result(text)):
            raise AlreadyRecorded
        return function.same(value, text)

    def _in_thread(self, function: StepFunction, args: tuple[Any, ...]) -> Any:
        transaction = self._block().open_sync()
        try:
            value = function.fn(transaction.connection, *args)
            text = function.encode(value)
        except BaseException:
            transaction.rollback_sync()
            raise
        if not transaction.commit_step_sync(self._result(text)):
            raise AlreadyRecorded
        transaction.after_commit()
        return function.same(value, text)

    def _block(self) -> TransactionBlock:
        from tenure.worker.run.transaction_block import TransactionBlock  # noqa: PLC0415 - brings the store

        return TransactionBlock(self._run, self._services, self._session, lambda: None)


class AlreadyRecorded(Exception):  # noqa: N818 - reads as the fact it states
    """The step is stored, or the run has lost its job or earlier steps. Nothing was written by this try."""
