"""What type checkers must see. Checked by mypy --strict and pyright; never run.

A line that must be refused carries an ignore: when the check is lost, the unused ignore is the error.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, assert_type
from uuid import UUID

from tenure import (
    Call,
    Cancel,
    Context,
    Continue,
    Fail,
    Group,
    Handle,
    Jobs,
    Provide,
    Retry,
    RetryAfter,
    ScheduleStatus,
    Snooze,
    Tenure,
    Tick,
    WorkflowContext,
    provided,
)
from tenure.testing import (
    EnqueuedJob,
    JobRun,
    RecordingContext,
    RecordingWorkflowContext,
    context,
    drain,
    drain_sync,
    enqueued,
    run_inline,
    workflow_context,
)

app = Tenure("postgresql://nowhere")


@dataclass
class Message:
    to: str


@dataclass
class Receipt:
    number: int


@app.job
async def bare(message: Message, copies: int = 1) -> Receipt:
    return Receipt(copies)


@app.job
async def with_context(ctx: Context, message: Message) -> Receipt:
    assert_type(ctx.attempt, int)
    return Receipt(ctx.attempt)


@app.job(queue="mail", priority="high", retry=Retry(max_attempts=5), timeout="30s", lease=timedelta(minutes=2))
async def with_options(ctx: Context, message: Message, *, urgent: bool = False) -> Receipt:
    return Receipt(1)


@app.job
def plain(a: int, b: int) -> str:
    return str(a + b)


@app.job(run_in="thread")
def plain_with_context(ctx: Context, a: int) -> list[str]:
    return [str(a)]


@app.job
async def decides(ctx: Context, n: int) -> int | Snooze | RetryAfter | Fail | Cancel:
    return Snooze("5s") if n else 1


@app.cron("0 9 * * *", timezone="Europe/Berlin", overlap="queue", catch_up="all", jitter="5m", input={"to": "ann"})
@app.job(queue="mail")
async def planned_job(ctx: Context, message: Message) -> Receipt:
    assert_type(ctx.scheduled_for, datetime | None)
    return Receipt(1)


@app.cron(every="10s", input={"a": 1})
def planned(a: int) -> str:
    return str(a)


@app.duty(every=timedelta(minutes=1), queue="chores")
async def chore(ctx: Context) -> None: ...


async def planning(message: Message) -> None:
    assert_type(await planned_job.enqueue(message), Handle[Receipt])
    assert_type(planned(1), str)
    assert_type(planned.enqueue_sync(1), Handle[str])
    assert_type(await chore.enqueue(), Handle[None])
    assert_type(await app.schedules.create("s", planned_job, "@daily"), ScheduleStatus)
    assert_type(app.schedules.find_sync("s"), ScheduleStatus | None)
    assert_type(await app.schedules.ticks("s"), list[Tick])
    assert_type(await app.schedules.run_now("s"), Handle[Any])


async def handing_in(message: Message) -> None:
    assert_type(await bare.enqueue(message), Handle[Receipt])
    assert_type(await bare.enqueue(message, copies=2), Handle[Receipt])
    assert_type(await with_context.enqueue(message), Handle[Receipt])
    assert_type(await with_options.enqueue(message, urgent=True), Handle[Receipt])
    assert_type(await with_options.using(delay="5m", priority="low").enqueue(message), Handle[Receipt])
    assert_type(await with_options.using(run_at=datetime.now(UTC)).enqueue(message), Handle[Receipt])
    assert_type(await plain.enqueue(1, b=2), Handle[str])
    assert_type(plain_with_context.enqueue_sync(1), Handle[list[str]])
    assert_type(with_options.call(message), Call[Receipt])
    assert_type(with_options.using(queue="q").call(message, urgent=True), Call[Receipt])
    assert_type(await app.enqueue_many([plain.call(1, 2), bare.call(message)]), list[Handle[Any]])


@app.job
async def answers(n: int) -> bool | Fail:
    return True


@app.job
async def always_continues(n: int) -> Continue[bool]:
    return Continue(answers, n)


@app.job
async def may_continue(message: Message) -> Receipt | Fail | Continue[bool]:
    return Continue(always_continues.using(delay="5m"), 1) if message.to else Receipt(1)


@app.job
def loops(n: int) -> int | Continue[int]:
    return Continue(loops, n - 1) if n else 0


@app.job
async def continues_twice(message: Message) -> Continue[Receipt | bool] | None:
    return Continue(may_continue, message)


async def chaining(message: Message) -> None:
    assert_type(await (await always_continues.enqueue(1)).result(), bool)
    assert_type(await (await may_continue.enqueue(message)).result(), Receipt | bool)
    assert_type(loops.enqueue_sync(1).result_sync(), int)
    assert_type(await (await continues_twice.enqueue(message)).result(), Receipt | bool | None)
    Continue(answers)  # type: ignore[call-arg]
    Continue(answers, "1")  # type: ignore[arg-type]
    Continue(len, [])  # type: ignore[arg-type]


async def resulting(message: Message) -> None:
    # What a handler may return to decide otherwise is not a result.
    assert_type(await (await answers.enqueue(1)).result(), bool)
    assert_type(answers.enqueue_sync(1).result_sync("5s"), bool)
    assert_type(await (await decides.enqueue(1)).result(timeout=5), int)
    assert_type(await (await bare.enqueue(message)).result(), Receipt)
    assert_type(plain.enqueue_sync(1, 2).result_sync(), str)
    assert_type(await chore.handle("018f0000-0000-7000-8000-000000000000").result(), None)
    assert_type(with_options.handle(UUID(int=1)), Handle[Receipt])
    assert_type(await app.enqueue("elsewhere", {"n": 1}, queue="far"), Handle[Any])
    assert_type(app.enqueue_sync("elsewhere"), Handle[Any])
    assert_type(await (await app.enqueue("elsewhere")).result(), Any)
    assert_type(await bare.handle("x").cancel(conn=object()), bool)
    assert_type(await app.enqueue_many([answers.using(key=True, within="2s").call(1)], notify=False), list[Handle[Any]])


async def calling(ctx: Context, message: Message) -> None:
    running: Coroutine[Any, Any, Receipt] = bare(message)
    assert_type(await running, Receipt)
    assert_type(await with_context(ctx, message), Receipt)
    assert_type(plain(1, 2), str)
    assert_type(plain_with_context(ctx, 1), list[str])


async def refused(ctx: Context, message: Message) -> None:
    await bare.enqueue()  # type: ignore[call-arg]
    await bare.enqueue("text")  # type: ignore[arg-type]
    await bare.enqueue(message, copys=2)  # type: ignore[call-arg]
    await with_context.enqueue(ctx, message)  # type: ignore[arg-type, call-arg]
    await with_context(message)  # type: ignore[arg-type, call-arg]
    await with_options.using(delay="5m").enqueue(message, urgent="yes")  # type: ignore[arg-type]
    with_options.using(prioritee=1)  # type: ignore[call-arg]
    with_options.using(run_at="tomorrow")  # type: ignore[arg-type]
    plain.enqueue_sync("1", "2")  # type: ignore[arg-type]
    plain_with_context.call(ctx, 1)  # type: ignore[arg-type, call-arg]
    plain("1", 2)  # type: ignore[arg-type]
    app.job(queu="mail")  # type: ignore[call-overload]
    app.job(run_in="fiber")  # type: ignore[call-overload]
    app.cron("@daily", overlap="never")  # type: ignore[arg-type]
    planned.enqueue_sync("1")  # type: ignore[arg-type]


def get_clock() -> datetime:
    return datetime.now(UTC)


@app.job
async def with_clock(ctx: Context, message: Message, clock: Annotated[datetime, Provide(get_clock)] = provided) -> str:
    assert_type(clock, datetime)
    return f"{message.to} {ctx.attempt}"


async def provided_parameters_are_not_enqueued(ctx: Context, message: Message) -> None:
    assert_type(await with_clock.enqueue(message), Handle[str])
    assert_type(await with_clock(ctx, message, clock=get_clock()), str)


# Workflows


async def reserve(item: str, count: int) -> Receipt:
    return Receipt(count)


def weigh(item: str) -> float:
    return 1.5


@app.step
async def wrap(item: str, paper: str = "") -> Receipt:
    return Receipt(1)


@app.workflow
async def sell(ctx: WorkflowContext, item: str, count: int = 1) -> Receipt:
    assert_type(await ctx.step("reserve", reserve, item, count), Receipt)
    assert_type(await ctx.step("weigh", weigh, item), float)
    assert_type(await ctx.call(plain, 1, b=2), str)
    assert_type(await (await ctx.start(answers, 1)).join(), bool)
    assert_type(await ctx.call(bare.using(queue="q"), Message("ann")), Receipt)
    assert_type(await ctx.gather(ctx.call(plain, 1, 2), ctx.call(plain, 3, 4)), list[str])
    assert_type(await ctx.wait_for("paid", type=Message), Message)
    assert_type(await wrap(item, paper="red"), Receipt)
    assert_type(ctx.now(), datetime)
    assert_type(ctx.uuid(), UUID)
    await wrap(7)  # type: ignore[arg-type]
    await ctx.step("reserve", reserve, item, "two")  # type: ignore[arg-type, call-arg]
    await ctx.call(plain, "1", 2)  # type: ignore[arg-type]
    return Receipt(1)


async def selling() -> None:
    assert_type(await sell.enqueue("cup", count=2), Handle[Receipt])
    assert_type(await (await sell.using(delay="5m").enqueue("cup")).result(), Receipt)
    assert_type(app.group(UUID(int=0)).id, UUID)
    await sell.enqueue(1)  # type: ignore[arg-type]


# Collections, chains and groups

billing = Jobs(prefix="billing")


@billing.job(queue="mail")
async def invoice(ctx: Context, order_id: int) -> Receipt:
    return Receipt(order_id)


async def collecting() -> None:
    app.include(billing)
    assert_type(await invoice.enqueue(1), Handle[Receipt])
    assert_type(await (await app.chains.start(may_continue, Message("ann"))).result(), Receipt | bool)
    assert_type(app.chains.start_sync(invoice.using(queue="q"), 1), Handle[Receipt])
    assert_type(await app.gather([invoice.call(1), invoice.call(2)]), Group[Receipt])
    assert_type(await (await app.gather([answers.call(1)])).results(), list[bool])
    assert_type(app.gather_sync([always_continues.call(1)]).results_sync(), list[bool])
    assert_type(await (await app.map(invoice, [1, 2])).results(), list[Receipt])
    await invoice.enqueue("1")  # type: ignore[arg-type]
    await app.chains.start(invoice, "1")  # type: ignore[call-overload]
    app.include(app)  # type: ignore[arg-type]


# Tests of users


async def testing() -> None:
    assert_type(await drain(app), list[JobRun])
    assert_type(drain_sync(app, retries=False), list[JobRun])
    assert_type(await enqueued(invoice), list[EnqueuedJob])
    assert_type(context(attempt=2), RecordingContext)
    assert_type(workflow_context(events={"paid": [{"to": "ann"}]}), RecordingWorkflowContext)
    assert_type(await invoice(context(), 1), Receipt)
    assert_type(await sell(workflow_context(), "cup"), Receipt)
    with run_inline(app):
        assert_type(invoice.enqueue_sync(1).result_sync(), Receipt)
    await sell(context(), "cup")  # type: ignore[arg-type]
