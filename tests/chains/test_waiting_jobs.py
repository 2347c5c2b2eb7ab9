"""Jobs that wait for chains, with workers and a leader."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tenure import ConfigError, Context, Continue, Fail, InvalidPayload, JobCanceled, JobFailed, Retry, Tenure
from tenure.model.ids import uuid7
from tests.waiting import until


@dataclass
class Price:
    item: str
    euros: float


def define(app: Tenure, run_in: str = "loop"):
    @app.job
    async def price(item: str) -> Price:
        return Price(item, float(len(item)))

    @app.job
    async def total(ctx: Context) -> float:
        assert all(isinstance(found, Price) for found in ctx.blockers)
        return sum(found.euros for found in ctx.blockers)

    return price, total


async def test_outputs_are_typed_and_in_order(app):
    price, _ = define(app)

    @app.job
    def items(ctx: Context) -> list[str]:
        return [found.item for found in ctx.blockers]

    async with app.running():
        prices = [await price.enqueue(item) for item in ("tea", "cup", "spoon")]
        waiting = await items.using(after=[prices[2], prices[0].id, str(prices[1].id)]).enqueue()
        assert await waiting.result("30s") == ["spoon", "tea", "cup"]
    status = await waiting.status()
    assert status.system == {"blockers": 3}


async def test_a_diamond(app):
    price, total = define(app)

    @app.job
    async def start() -> str:
        return "begin"

    async with app.running():
        first = await start.enqueue()
        middle = [await price.using(after=[first]).enqueue(item) for item in ("a", "bb", "ccc")]
        assert await (await total.using(after=middle).enqueue()).result("30s") == 6.0


async def test_a_blocker_in_the_same_transaction(app, database):
    price, total = define(app)
    async with app.running():
        with database.connection.transaction():
            first = price.using(conn=database.connection).enqueue_sync("tea")
            waiting = total.using(conn=database.connection, after=[first]).enqueue_sync()
        assert await waiting.result("30s") == 3.0


async def test_the_handler_sees_failures_with_run(app):
    @app.job(retry=Retry(max_attempts=1))
    async def breaks(how: str) -> str | Fail:
        if how == "raise":
            raise RuntimeError("broken")
        return Fail("no") if how == "fail" else how

    @app.job
    async def sees(ctx: Context) -> list[str]:
        return [f"{type(found).__name__}: {found}" if isinstance(found, Exception) else found for found in ctx.blockers]

    async with app.running():
        first = [await breaks.enqueue(how) for how in ("raise", "fine", "fail")]
        gone = await breaks.using(delay="1h").enqueue("later")
        waiting = await sees.using(after=[*first, gone], on_blocker_failure="run").enqueue()
        await gone.cancel("not needed")
        seen = await waiting.result("30s")
    assert "JobFailed" in seen[0]
    assert "broken" in seen[0]
    assert seen[1] == "fine"
    assert "no" in seen[2]
    assert seen[3].startswith("JobCanceled")
    assert "not needed" in seen[3]


async def test_a_waiting_job_is_canceled_with_its_blocker_and_its_result_says_why(app):
    price, total = define(app)
    async with app.running():
        first = await price.using(delay="1h").enqueue("tea")
        waiting = await total.using(after=[first]).enqueue()
        last = await total.using(after=[waiting]).enqueue()
        await first.cancel()
        with pytest.raises(JobCanceled, match=f"chain {first.id}"):
            await waiting.result("30s")
        with pytest.raises(JobCanceled, match=f"chain {waiting.id}"):
            await last.result("30s")


async def test_a_chain_that_waits_for_its_children(app):
    price, total = define(app)

    @app.job
    async def order(items: list[str]) -> Continue[float]:
        children = [await price.enqueue(item) for item in items]
        return Continue(total.using(after=children))

    async with app.running():
        assert await (await order.enqueue(["a", "bb"])).result("30s") == 3.0
        # The chain itself can be waited for.
        first = await order.enqueue(["ccc"])

        @app.job
        async def after(ctx: Context) -> float:
            return ctx.blockers[0]

        async with app.running():
            assert await (await after.using(after=[first]).enqueue()).result("30s") == 3.0


async def test_blockers_are_there_again_at_a_retry_and_in_processes(other_app):
    from tests.chains import chain_jobs

    async with other_app.running():
        first = await chain_jobs.last.enqueue(1, where=[])
        for job in (chain_jobs.fails_once, chain_jobs.blockers_in_a_process):
            assert await (await job.using(after=[first]).enqueue()).result("60s") == [["last 1"]]
    await other_app.close()


async def test_what_cannot_be_waited_for_is_refused(app):
    _, total = define(app)
    with pytest.raises(InvalidPayload, match="which does not exist"):
        await total.using(after=[uuid7()]).enqueue()
    with pytest.raises(ConfigError, match="neither a handle nor the id of a job"):
        total.using(after=["yesterday"])
    with pytest.raises(ConfigError, match=r"must be a list of handles or ids: after=\[handle\]"):
        total.using(after=uuid7())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="did you mean 'cancel'"):
        total.using(after=[], on_blocker_failure="cancle")  # type: ignore[arg-type]


async def test_explain_names_the_blockers_that_are_missing(app):
    price, total = define(app)
    first = [await price.using(delay="1h").enqueue("tea") for _ in range(7)]
    waiting = await total.using(after=first).enqueue()
    [blocked, resolver, *_] = (await waiting.explain()).reasons
    assert blocked.code == "blocked"
    assert "waits for 7 chains (0 of 7 have ended)" in blocked.text
    assert f"{first[0].id} (price, scheduled)" in blocked.text
    assert blocked.text.endswith("and 2 more")
    assert resolver.code == "no_resolver"


async def test_explain_says_that_a_failed_blocker_must_be_replayed(app, database):
    @app.job(retry=Retry(max_attempts=1))
    async def breaks() -> None:
        raise RuntimeError("broken")

    @app.job
    async def waits() -> None: ...

    async with app.running():
        first = await breaks.enqueue()
        waiting = await waits.using(after=[first], on_blocker_failure="wait").enqueue()
        with pytest.raises(JobFailed):
            await first.result("30s")
        await until(lambda: database.sql("select count(*) from tenure.chain_endings where resolved") == [(1,)])
        codes = [reason.code for reason in (await waiting.explain()).reasons]
        assert codes[:2] == ["blocked", "blocker_failed"]


@pytest.fixture
def other_app(dsn: str) -> Tenure:
    from tests.chains import chain_jobs

    chain_jobs.app.configure(dsn=dsn)
    return chain_jobs.app


async def test_a_finished_job_that_is_retried_has_its_blockers_again(app):
    price, total = define(app)
    async with app.running():
        first = await price.enqueue("tea")
        waiting = await total.using(after=[first]).enqueue()
        assert await waiting.result("30s") == 3.0
        again = await waiting.retry()
        assert again.id != waiting.id
        assert await again.result("30s") == 3.0
    status = await again.status()
    assert (status.chain_id, status.system) == (again.id, {"blockers": 1, "retry_of": str(waiting.id)})
