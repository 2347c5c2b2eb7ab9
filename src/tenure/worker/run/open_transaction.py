"""The transaction of a run: entered, checked, and ended with the job or without it.

The id that PostgreSQL gave the transaction at its start is part of the settling statement. If the handler has ended that
transaction (a commit or rollback of its own, or a connection that commits every statement), the statement writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tenure.model.errors import SchemaMismatch, TransactionError
from tenure.store import jobs, late_outputs, steps
from tenure.store.jobs import EnteredRow, MovedRow, SettledRow, TransactionRow
from tenure.store.query import Query
from tenure.store.steps import StepResult
from tenure.worker.run.run import Run
from tenure.worker.run.settlement import Settlement, settling

if TYPE_CHECKING:
    from tenure.store.borrowed import Borrowed

log = logging.getLogger("tenure")

AUTOCOMMIT = (
    "ctx.transaction() was given a connection on which every statement commits by itself, so the job cannot be completed in one "
    "transaction with them; the handler was not run any further. Use an engine without isolation_level='AUTOCOMMIT', or "
    "ctx.transaction() without an argument"
)
ELSEWHERE = (
    "ctx.transaction() was given a connection on which this job cannot be seen, so the job cannot be completed there: it leads "
    "to another database, schema or server, or its transaction began before the job was claimed. Pass a connection to Tenure's "
    "own database, outside of an open transaction"
)
COMMITTED = (
    "the handler committed in ctx.transaction() by itself, so the job cannot be completed in the same transaction, and was not. "
    "What the handler committed stays in the database; this job is not retried, because that would repeat it. Leave "
    "commit() to Tenure, check what was written, then replay or cancel the job"
)
ROLLED_BACK = (
    "the handler rolled back the transaction of ctx.transaction() by itself, so the job cannot be completed in it, and was not. "
    "Nothing was written. To undo a part only, use a savepoint (begin_nested(), connection.transaction(), atomic())"
)
KEPT_WRITES = (
    "The handler had committed the transaction of ctx.transaction() by itself before this error: what it committed stays in the "
    "database, and a retry may write it again. Leave commit() to Tenure"
)


class OpenTransaction:
    def __init__(
        self,
        run: Run,
        connection: Any,
        borrowed: Borrowed,
        schema: str,
        *,
        given: object | None = None,
        release: Callable[[], Any] | None = None,
    ) -> None:
        """`given` is what the handler passed to `ctx.transaction()`; `release()` returns what Tenure has opened itself."""
        self.connection = connection
        self.given = given
        self.ends_with_block = given is not None and release is None and not borrowed.thread_bound
        """The handler opened the session and may close it right after the block, so it commits there."""
        self.thread_bound = borrowed.thread_bound
        """Only the handler's own thread may end it."""
        self.pid: int | None = None
        """Of the server's process, where the connection is ours and not behind a pooler."""
        self.opened = time.monotonic()
        self._borrowed = borrowed
        self._schema = schema
        self._release = release
        self._entry = jobs.enter_transaction(run.job_id, run.claim_id)
        self._xact: str | None = None

    # Entering

    async def enter(self) -> bool:
        """Begins. False: this job is not seen here. Raises `TransactionError` where statements commit by themselves."""
        try:
            await self._borrowed.begin()
            first = await self._borrowed.fetch(self._entry, self._schema)
            second = first if self.given is None else await self._borrowed.fetch(self._entry, self._schema)
        except SchemaMismatch:
            return False
        return self._entered(first[0], second[0])

    def enter_sync(self) -> bool:
        try:
            self._borrowed.begin_sync()
            first = self._borrowed.fetch_sync(self._entry, self._schema)
            second = first if self.given is None else self._borrowed.fetch_sync(self._entry, self._schema)
        except SchemaMismatch:
            return False
        return self._entered(first[0], second[0])

    def _entered(self, first: EnteredRow, second: EnteredRow) -> bool:
        self._xact = first.xact
        if second.xact != self._xact:
            raise TransactionError(AUTOCOMMIT)
        return first.seen or self.given is None

    # Committing

    async def commit(self, settlement: Settlement, threads: Executor | None = None) -> bool | None:
        """Settles the job and commits: returns whether a client watches it. None: the job was lost, nothing was written."""
        if not self._borrowed.is_async:
            return await asyncio.get_running_loop().run_in_executor(threads, self.commit_sync, settlement)
        async with self._ending():
            query = self._settling(settlement)
            # Twice: it finds the row by its ctid, which a concurrent heartbeat may have changed.
            rows = await self._borrowed.fetch(query, self._schema) or await self._borrowed.fetch(query, self._schema)
            if rows:
                if settlement.run.owes_output:
                    await self._borrowed.fetch(_owing(settlement.run), self._schema)
                await self._borrowed.commit()
                settlement.dependants = rows[0].dependants
                return rows[0].watched
            await self._refuse_if_ended()
        return None

    def commit_sync(self, settlement: Settlement) -> bool | None:
        with self._ending_sync():
            query = self._settling(settlement)
            rows = self._borrowed.fetch_sync(query, self._schema) or self._borrowed.fetch_sync(query, self._schema)
            if rows:
                if settlement.run.owes_output:
                    self._borrowed.fetch_sync(_owing(settlement.run), self._schema)
                self._borrowed.commit_sync()
                settlement.dependants = rows[0].dependants
                return rows[0].watched
            self._refuse_if_ended_sync()
        return None

    # A step of a workflow

    async def commit_step(self, step: StepResult) -> bool:
        """Stores the step and commits. False: the job was lost, or the step is stored already; nothing was written."""
        async with self._ending():
            if await self._borrowed.fetch(self._recording(step), self._schema):
                await self._borrowed.commit()
                return True
            await self._refuse_if_ended()
        return False

    def commit_step_sync(self, step: StepResult) -> bool:
        with self._ending_sync():
            if self._borrowed.fetch_sync(self._recording(step), self._schema):
                self._borrowed.commit_sync()
                return True
            self._refuse_if_ended_sync()
        return False

    def _recording(self, step: StepResult) -> Query[str]:
        assert self._xact is not None
        return steps.record_in_transaction(step, self._xact)

    def after_commit(self) -> None:
        """What the caller's framework runs after a commit. May raise any error of the caller's code."""
        self._borrowed.after_commit_sync()

    # Undoing

    async def rollback(self, threads: Executor | None = None) -> bool:
        """True: it was too late, the handler had committed the transaction by itself."""
        if not self._borrowed.is_async:
            return await asyncio.get_running_loop().run_in_executor(threads, self.rollback_sync)
        try:
            await self._borrowed.rollback()
            if self.given is not None and self._xact is not None:
                with suppress(Exception):  # the connection is broken
                    [row] = await self._borrowed.fetch(self._check, self._schema)
                    return row.committed
            return False
        finally:
            if self.given is not None:
                with suppress(Exception):
                    await self._borrowed.rollback()
            await self._return_connection()

    def rollback_sync(self) -> bool:
        try:
            self._borrowed.rollback_sync()
            if self.given is not None and self._xact is not None:
                with suppress(Exception):
                    [row] = self._borrowed.fetch_sync(self._check, self._schema)
                    return row.committed
            return False
        finally:
            if self.given is not None:
                with suppress(Exception):
                    self._borrowed.rollback_sync()
            self._return_connection_sync()

    @asynccontextmanager
    async def _ending(self) -> AsyncIterator[None]:
        """Rolls back on any error, and returns the connection in any case."""
        try:
            yield
        except BaseException:
            with suppress(Exception):  # the first error is more useful
                await self._borrowed.rollback()
            raise
        finally:
            await self._return_connection()

    @contextmanager
    def _ending_sync(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self._borrowed.rollback_sync()
            raise
        finally:
            self._return_connection_sync()

    async def _refuse_if_ended(self) -> None:
        """Nothing was written: the job was lost, or the handler has ended the transaction. Only the second is an error."""
        [now] = await self._borrowed.fetch(self._check, self._schema)
        [again] = await self._borrowed.fetch(self._check, self._schema)
        self._compare(now, again)
        await self._borrowed.rollback()

    def _refuse_if_ended_sync(self) -> None:
        [now] = self._borrowed.fetch_sync(self._check, self._schema)
        [again] = self._borrowed.fetch_sync(self._check, self._schema)
        self._compare(now, again)
        self._borrowed.rollback_sync()

    def _compare(self, now: TransactionRow, again: TransactionRow) -> None:
        if now.xact == self._xact:
            return
        if (
            now.committed or again.xact != now.xact
        ):  # or what came after the handler's rollback was committed, a statement at a time
            raise TransactionError(COMMITTED, committed=True)
        raise TransactionError(ROLLED_BACK)

    @property
    def _check(self) -> Query[TransactionRow]:
        assert self._xact is not None
        return jobs.check_transaction(self._xact)

    def _settling(self, settlement: Settlement) -> Query[SettledRow | MovedRow]:
        return settling([settlement], xact=self._xact)

    async def _return_connection(self) -> None:
        with _logged():
            if self._release is not None:
                released = self._release()
                if isinstance(released, Awaitable):
                    await released

    def _return_connection_sync(self) -> None:
        with _logged():
            if self._release is not None:
                self._release()


def _owing(run: Run) -> Query[str]:
    """For as long as the handler may run. Without a time limit, a day: only a mark that is left behind needs an end."""
    return late_outputs.owe_output(run.claim_id, (run.time_limit or 86400.0) + 60.0)


@contextmanager
def _logged() -> Iterator[None]:
    """What is committed stays committed, even if its connection cannot be returned."""
    try:
        yield
    except Exception:
        log.exception("a connection of ctx.transaction() could not be returned to where it came from")
