"""The block of `ctx.transaction()`: which connection it is on, and whether the job can be completed there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from tenure.lifeline import exit_if_forked, forks
from tenure.model.errors import ConfigError, LeaseLost, TransactionError
from tenure.store import claims
from tenure.store.claims import LostClaimRow
from tenure.store.query import Query
from tenure.worker.run import settlement as settlements
from tenure.worker.run.open_transaction import ELSEWHERE, OpenTransaction
from tenure.worker.run.run import Run
from tenure.worker.run.settlement import Settlement
from tenure.worker.run.transactions import settle_open, settle_open_sync, undo, undo_sync

if TYPE_CHECKING:
    from tenure.store.borrowed import Borrowed
    from tenure.worker.run.services import RunServices


class TransactionBlock:
    """What `ctx.transaction()` gives: `async with` in coroutines, `with` in plain functions."""

    def __init__(self, run: Run, services: RunServices, given: object | None, output: Callable[[], tuple[Any] | None]) -> None:
        self._run = run
        self._services = services
        self._given = given
        self._output = output
        self._inner = False
        self._forks = forks()

    async def __aenter__(self) -> Any:
        if self._run.opening is None:
            self._run.opening = asyncio.Lock()
        async with self._run.opening:  # two tasks of one handler share its transaction
            return await self._enter()

    async def _enter(self) -> Any:
        if (open_already := self._joined()) is not None:
            return open_already
        self._run.transaction = await self.open()
        return self._run.transaction.connection

    async def open(self) -> OpenTransaction:
        """Begun, on a connection on which the job can be seen."""
        transaction = await self._opened()
        try:
            if not await transaction.enter():
                await self._refuse_unseen()
        except BaseException:
            with suppress(Exception):  # the first error is more useful
                await transaction.rollback()
            raise
        return transaction

    def __enter__(self) -> Any:
        if (open_already := self._joined()) is not None:
            return open_already
        self._run.transaction = self.open_sync()
        return self._run.transaction.connection

    def open_sync(self) -> OpenTransaction:
        transaction = self._opened_sync()
        try:
            if not transaction.enter_sync():
                self._refuse_unseen_sync()
        except BaseException:
            with suppress(Exception):
                transaction.rollback_sync()
            raise
        return transaction

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        exit_if_forked(self._forks)
        if self._inner:
            return
        if error is not None:
            await undo(self._run, error)
        elif self._ends_here:
            await settle_open(self._run, self._services, self._settlement)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        exit_if_forked(self._forks)
        if self._inner:
            return
        if error is not None:
            undo_sync(self._run, error)
        elif self._ends_here:
            settle_open_sync(self._run, self._services, self._settlement)

    @property
    def _ends_here(self) -> bool:
        transaction = self._run.transaction
        return transaction.ends_with_block if transaction is not None else self._given is not None

    def _settlement(self) -> Settlement:
        """With the output, if it was given in time."""
        output = self._output()
        self._run.owes_output = output is None
        return settlements.of_completion(self._run) if output is None else settlements.of_result(self._run, output[0])

    # Opening

    def _joined(self) -> Any:
        """A run has one transaction: a block inside another is part of it."""
        run = self._run
        run.signal.check()
        if run.settled:
            raise LeaseLost(run.job_uuid, "already_completed")
        if run.transaction is None:
            return None
        if self._given is not None and self._given not in (run.transaction.connection, run.transaction.given):
            raise ConfigError(
                "this run already has an open transaction, and another session cannot be part of it: use the session of the "
                "outer block, or remove atomic=True and the outer ctx.transaction()"
            )
        self._inner = True
        return run.transaction.connection

    async def _opened(self) -> OpenTransaction:
        from tenure.store.borrowed import borrow, source_of  # noqa: PLC0415 - brings the driver

        if self._given is None:
            pools = self._services.resources.pools
            connection = await pools.take()
            return self._own(connection, borrow(connection), partial(pools.give, connection))
        source = source_of(self._given)
        if source is None:
            borrowed = self._borrow()
            if borrowed.thread_bound:
                raise ConfigError(
                    "a Django connection can only be used by its own thread: make the handler a plain function (`def`) and write "
                    "`with ctx.transaction(connection):`"
                )
            return self._opened_by(self._given, borrowed)
        connection = await source.open() if source.is_async else source.open()
        return self._opened_by(connection, borrow(connection), partial(source.close, connection))

    def _opened_sync(self) -> OpenTransaction:
        from tenure.store.borrowed import borrow, source_of  # noqa: PLC0415 - brings the driver

        if self._given is None:
            pools = self._services.resources.pools
            connection = pools.take_sync()
            return self._own(connection, borrow(connection), partial(pools.give_sync, connection))
        source = source_of(self._given)
        if source is None:
            borrowed = self._borrow()
            if borrowed.is_async:
                raise ConfigError(
                    "this connection can only be used with await: write `async with ctx.transaction(...)` in a coroutine, or "
                    "pass a synchronous one"
                )
            return self._opened_by(self._given, borrowed)
        if source.is_async:
            raise ConfigError(
                f"{type(self._given).__name__} gives connections that need await: use it in a coroutine, by `async with`, or "
                "pass a synchronous one"
            )
        connection = source.open()
        return self._opened_by(connection, borrow(connection), partial(source.close, connection))

    def _borrow(self) -> Borrowed:
        from tenure.store.borrowed import SOURCES, borrow  # noqa: PLC0415 - brings the driver

        try:
            return borrow(self._given)
        except ConfigError as error:
            raise ConfigError(f"ctx.transaction(): {error}, or to have it opened for you {SOURCES}") from None

    def _own(self, connection: Any, borrowed: Borrowed, release: Callable[[], Any]) -> OpenTransaction:
        database = self._services.resources.database
        transaction = OpenTransaction(self._run, connection, borrowed, database.schema, release=release)
        if not database.pooled:
            transaction.pid = connection.info.backend_pid
        return transaction

    def _opened_by(self, connection: Any, borrowed: Borrowed, release: Callable[[], Any] | None = None) -> OpenTransaction:
        schema = self._services.resources.database.schema
        return OpenTransaction(self._run, connection, borrowed, schema, given=self._given, release=release)

    # The job is not visible on the given connection: was it lost, or is it the wrong connection?

    async def _refuse_unseen(self) -> NoReturn:
        from tenure.store.borrowed import borrow  # noqa: PLC0415 - brings the driver

        async with self._services.resources.pools.connection() as connection:
            lost = await borrow(connection).fetch(self._claim, self._services.resources.database.schema)
        self._refuse(lost)

    def _refuse_unseen_sync(self) -> NoReturn:
        from tenure.store.borrowed import borrow  # noqa: PLC0415 - brings the driver

        with self._services.resources.pools.connection_sync() as connection:
            lost = borrow(connection).fetch_sync(self._claim, self._services.resources.database.schema)
        self._refuse(lost)

    @property
    def _claim(self) -> Query[LostClaimRow]:
        return claims.check(json.dumps([{"id": self._run.job_id, "claim_id": self._run.claim_id}]))

    def _refuse(self, lost: list[LostClaimRow]) -> NoReturn:
        raise LeaseLost(self._run.job_uuid, lost[0].reason) if lost else TransactionError(ELSEWHERE)


def django_session(session: object | None, alias: str) -> object:
    """Django's connection of this thread to the database with this alias."""
    if session is not None:
        raise ConfigError("ctx.transaction() takes a session, or using= with the alias of a Django database, not both")
    from tenure.store.borrowed.django_adapter import connection_of  # noqa: PLC0415 - brings the driver

    return connection_of(alias)
