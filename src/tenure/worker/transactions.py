"""Exactly once for the user's own database: what the handler writes and that its job is done commit together, or not at all.

Two forms. On a connection of ours the transaction stays open until the handler has returned, and commits with its result.
A session of the handler's own may be closed as soon as its block ends, so it commits there; the result is what
`ctx.set_output()` was given, or is added right after. In both, the settling statement is part of the transaction and
checks the claim: a run that lost its job commits nothing.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tenure.model.errors import ConfigError, LeaseLost, StoreUnavailable
from tenure.store import jobs
from tenure.store.query import Query
from tenure.worker import settlements
from tenure.worker.runs import Run
from tenure.worker.settlements import Settlement
from tenure.worker.signals import Aborted

if TYPE_CHECKING:
    from tenure.store.borrowed import Borrowed
    from tenure.worker.desks import Desk

_taking = threading.Lock()


class OpenTransaction:
    """The transaction of a run, until it is ended."""

    def __init__(self, connection: Any, borrowed: Borrowed, schema: str, release: Callable[[], Any]) -> None:
        self.connection = connection
        self._borrowed = borrowed
        self._schema = schema
        self._release = release
        self._is_async = borrowed.is_async
        self.pid: int | None = None
        """Of the server's process, where the connection is ours and not behind a pooler."""
        self.opened = time.monotonic()

    async def commit(self, settlement: Settlement, threads: Executor | None = None) -> bool | None:
        """Settles the job and commits: tells whether somebody watches it. None: the job is not ours, nothing was written."""
        if not self._is_async:
            return await asyncio.get_running_loop().run_in_executor(threads, self.commit_sync, settlement)
        try:
            settling = _settling(settlement)
            # Twice: it goes by the row's place, which a sign of life that was still under way has changed meanwhile.
            rows = await self._borrowed.fetch(settling, self._schema) or await self._borrowed.fetch(settling, self._schema)
            if rows:
                await self._borrowed.commit()
                return bool(rows[0][1])
            await self._borrowed.rollback()
        except BaseException:
            with suppress(Exception):  # the first error tells more
                await self._borrowed.rollback()
            raise
        finally:
            await self._release()
        return None

    def commit_sync(self, settlement: Settlement) -> bool | None:
        try:
            settling = _settling(settlement)
            rows = self._borrowed.fetch_sync(settling, self._schema) or self._borrowed.fetch_sync(settling, self._schema)
            if rows:
                self._borrowed.commit_sync()
                return bool(rows[0][1])
            self._borrowed.rollback_sync()
        except BaseException:
            with suppress(Exception):
                self._borrowed.rollback_sync()
            raise
        finally:
            self._release()
        return None

    async def rollback(self, threads: Executor | None = None) -> None:
        if not self._is_async:
            await asyncio.get_running_loop().run_in_executor(threads, self.rollback_sync)
            return
        try:
            await self._borrowed.rollback()
        finally:
            await self._release()

    def rollback_sync(self) -> None:
        try:
            self._borrowed.rollback_sync()
        finally:
            self._release()


def take(run: Run) -> OpenTransaction | None:
    """Whoever takes it ends it: the handler's thread and the loop may both want to."""
    with _taking:
        transaction, run.transaction = run.transaction, None
        return transaction


def take_open(run: Run) -> OpenTransaction:
    transaction = take(run)
    if transaction is None:
        raise Aborted(run.abort_reason or "error")  # rolled back already, over the handler's head
    return transaction


async def settle_open(run: Run, desk: Desk, settle: Callable[[], Settlement], threads: Executor | None = None) -> None:
    """Settles the job in the run's own transaction and commits. Raises `LeaseLost`, and writes nothing, when it is not ours."""
    with _closing(run):
        try:
            await desk.flush(run)
            settlement = settle()
        except BaseException:
            await take_open(run).rollback(threads)
            raise
        with _doubting(desk, settlement):
            watched = await take_open(run).commit(settlement, threads)
        _conclude(desk, settlement, watched)


def settle_open_sync(run: Run, desk: Desk, settle: Callable[[], Settlement]) -> None:
    with _closing(run):
        try:
            desk.flush_sync(run)
            settlement = settle()
        except BaseException:
            take_open(run).rollback_sync()
            raise
        with _doubting(desk, settlement):
            watched = take_open(run).commit_sync(settlement)
        _conclude(desk, settlement, watched)


@contextmanager
def _closing(run: Run) -> Iterator[None]:
    """While the database decides, the run cannot be aborted and says nothing more."""
    run.closing = True
    try:
        yield
    finally:
        run.closing = False


@contextmanager
def _doubting(desk: Desk, settlement: Settlement) -> Iterator[None]:
    """An unanswered COMMIT may have happened: whoever settles the run finds out."""
    try:
        yield
    except StoreUnavailable:
        desk.doubt(settlement)
        raise


def _conclude(desk: Desk, settlement: Settlement, watched: bool | None) -> None:
    if watched is None:
        raise LeaseLost(settlement.run.job_uuid, "taken_by_another_worker")
    settlement.run.settled = True
    desk.settled(settlement, watched=watched)


class TransactionBlock:
    """What `ctx.transaction()` gives: `async with` in coroutines, `with` in plain functions."""

    def __init__(self, run: Run, desk: Desk, given: object | None, output: Callable[[], tuple[Any] | None]) -> None:
        self._run = run
        self._desk = desk
        self._given = given
        self._output = output
        self._inner = False

    async def __aenter__(self) -> Any:
        if self._run.opening is None:
            self._run.opening = asyncio.Lock()
        async with self._run.opening:  # two tasks of one handler share its transaction
            return await self._enter()

    async def _enter(self) -> Any:
        if (open_already := self._begin()) is not None:
            return open_already
        if self._given is not None:
            borrowed = _borrow(self._given)
            await borrowed.begin()
            return self._opened(self._given, borrowed, _nothing if borrowed.is_async else lambda: None)
        pools = self._desk.resources.pools
        connection = await pools.take()
        borrowed = _borrow(connection)
        try:
            await borrowed.begin()
        except BaseException:
            await pools.give(connection)
            raise
        return self._opened(connection, borrowed, partial(pools.give, connection))

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._inner:
            return
        if error is not None:
            if (transaction := take(self._run)) is not None:
                await transaction.rollback()
        elif self._given is not None:
            await settle_open(self._run, self._desk, self._settlement)

    def __enter__(self) -> Any:
        if (open_already := self._begin()) is not None:
            return open_already
        if self._given is not None:
            borrowed = _borrow(self._given)
            borrowed.begin_sync()
            return self._opened(self._given, borrowed, lambda: None)
        pools = self._desk.resources.pools
        connection = pools.take_sync()
        borrowed = _borrow(connection)
        try:
            borrowed.begin_sync()
        except BaseException:
            pools.give_sync(connection)
            raise
        return self._opened(connection, borrowed, partial(pools.give_sync, connection))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._inner:
            return
        if error is not None:
            if (transaction := take(self._run)) is not None:
                transaction.rollback_sync()
        elif self._given is not None:
            settle_open_sync(self._run, self._desk, self._settlement)

    def _settlement(self) -> Settlement:
        """With the output, if it was given in time."""
        output = self._output()
        return settlements.of_completion(self._run) if output is None else settlements.of_result(self._run, output[0])

    def _begin(self) -> Any:
        """A run has one transaction: a block inside another is part of it."""
        self._run.signal.check()
        if self._run.settled:
            raise LeaseLost(self._run.job_uuid, "already_completed")
        if self._run.transaction is None:
            return None
        if self._given not in (None, self._run.transaction.connection):
            raise ConfigError(
                "this run has a transaction already, and another session cannot be part of it: use the one it has, or leave "
                "atomic=True and the outer ctx.transaction() out"
            )
        self._inner = True
        return self._run.transaction.connection

    def _opened(self, connection: Any, borrowed: Borrowed, release: Callable[[], Any]) -> Any:
        place = self._desk.resources.place
        transaction = OpenTransaction(connection, borrowed, place.schema, release)
        if self._given is None and not place.pooled:
            transaction.pid = connection.info.backend_pid
        self._run.transaction = transaction
        return connection


def _borrow(connection: object) -> Borrowed:
    from tenure.store.borrowed import borrow  # noqa: PLC0415 - brings the driver

    return borrow(connection)


async def _nothing() -> None:
    """A session of the handler's own is not ours to give away."""


def _settling(settlement: Settlement) -> Query:
    text = f"[{settlement.text}]"
    return jobs.finish(text) if settlement.finishing else jobs.move(text)
