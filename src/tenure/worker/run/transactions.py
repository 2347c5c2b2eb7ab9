"""Exactly once for the user's own database: what the handler writes and that its job is done commit together, or not at all.

- On a connection that Tenure opened (its own, or one of a session factory, engine or pool that the handler passed), and on
  Django's connection, the transaction stays open until the handler has returned, and commits with its result.
- A session that the handler opened may be closed right after the block, so it commits where the block ends. The output is
  what `ctx.set_output()` was given by then, or else is added when the handler has returned.

In all of them the settling statement is part of the transaction, and checks the claim and the transaction's id: a run that
lost its job, or a handler that ended the transaction by itself, completes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tenure.model.errors import LeaseLost, StoreUnavailable
from tenure.worker.run.abort import Aborted
from tenure.worker.run.open_transaction import KEPT_WRITES, OpenTransaction
from tenure.worker.run.run import Run
from tenure.worker.run.settlement import Settlement

if TYPE_CHECKING:
    from tenure.worker.run.services import RunServices

log = logging.getLogger("tenure")

_taking = threading.Lock()


def take(run: Run) -> OpenTransaction | None:
    """The taker ends it: the handler's thread and the loop may both want to."""
    with _taking:
        transaction, run.transaction = run.transaction, None
        return transaction


def take_open(run: Run) -> OpenTransaction:
    transaction = take(run)
    if transaction is None:
        raise Aborted(run.abort_reason or "error")  # rolled back already, without the handler
    return transaction


# Settling in the transaction


async def settle_open(run: Run, services: RunServices, settle: Callable[[], Settlement], threads: Executor | None = None) -> None:
    """Settles the job in the run's own transaction and commits. Raises `LeaseLost`, and writes nothing, when it is not ours."""
    with _committing(run):
        try:
            await services.flush(run)
            settlement = settle()
        except BaseException:
            await take_open(run).rollback(threads)
            raise
        with _doubting(services, settlement):
            watched = await take_open(run).commit(settlement, threads)
        _conclude(services, settlement, watched)


def settle_open_sync(run: Run, services: RunServices, settle: Callable[[], Settlement]) -> None:
    with _committing(run):
        try:
            services.flush_sync(run)
            settlement = settle()
        except BaseException:
            take_open(run).rollback_sync()
            raise
        with _doubting(services, settlement):
            transaction = take_open(run)
            watched = transaction.commit_sync(settlement)
        _conclude(services, settlement, watched)
    transaction.after_commit()


@contextmanager
def _committing(run: Run) -> Iterator[None]:
    """While the database decides, the run cannot be aborted and reports nothing more."""
    run.begin_commit()
    try:
        yield
    finally:
        run.end_commit()


@contextmanager
def _doubting(services: RunServices, settlement: Settlement) -> Iterator[None]:
    """An unanswered COMMIT may have happened, also one that was cut off by a cancellation: the settler finds out."""
    try:
        yield
    except (StoreUnavailable, asyncio.CancelledError):
        services.doubt(settlement)
        raise


def _conclude(services: RunServices, settlement: Settlement, watched: bool | None) -> None:
    if watched is None:
        raise LeaseLost(settlement.run.job_uuid, "taken_by_another_worker")
    settlement.run.settle_itself(settlement.what)
    services.settled(settlement, watched=watched)


# Undoing it


async def undo(run: Run, error: BaseException, threads: Executor | None = None) -> None:
    """The handler failed with `error`: nothing that it wrote in its transaction stays."""
    if (transaction := take(run)) is not None and await transaction.rollback(threads):
        _report_kept_writes(run, error)


def undo_sync(run: Run, error: BaseException) -> None:
    if (transaction := take(run)) is not None and transaction.rollback_sync():
        _report_kept_writes(run, error)


def _report_kept_writes(run: Run, error: BaseException) -> None:
    with suppress(Exception):  # some exceptions take no notes
        error.add_note(KEPT_WRITES)
    log.error(KEPT_WRITES, extra=run.log_fields)
