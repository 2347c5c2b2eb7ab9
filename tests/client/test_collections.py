"""`Jobs`: jobs that are defined without an app, and included by one."""

from __future__ import annotations

import pytest

from tenure import ConfigError, Context, Jobs, Limit, Tenure
from tenure.testing import drain, run_inline


@pytest.fixture
def billing():
    billing = Jobs(prefix="billing", queue="money", max_attempts=7)

    @billing.job
    async def charge(n: int) -> int:
        return n

    @billing.job(name="refund", queue="other", concurrency=Limit(1))
    def give_back(ctx: Context, n: int) -> str:
        return f"{ctx.kind} {ctx.max_attempts}"

    @billing.cron("@daily")
    async def close_the_day() -> None: ...

    return billing


def test_names_have_the_prefix_and_options_their_defaults(billing):
    app = Tenure()
    app.include(billing)
    kinds = {name: (kind.queue, kind.retry.max_attempts) for name, kind in app.kinds.items()}
    assert kinds == {"billing.charge": ("money", 7), "billing.refund": ("other", 7), "billing.close_the_day": ("money", 7)}
    assert list(app.kinds.schedules) == ["billing.close_the_day"]
    assert "kind:billing.refund" in app.kinds.limits


async def test_its_jobs_are_enqueued_and_run_by_the_app(billing, app):
    charge = billing.jobs["billing.charge"]
    app.include(billing)
    assert app.jobs["billing.charge"] is charge
    await charge.enqueue(3)
    await app.enqueue("billing.refund", {"n": 1})
    assert sorted(str(run.output) for run in await drain(app)) == ["3", "billing.refund 7"]


async def test_an_option_of_a_call(billing, app):
    app.include(billing)
    handle = await billing.jobs["billing.charge"].using(queue="elsewhere").enqueue(1)
    assert (await handle.status()).queue == "elsewhere"


def test_a_job_that_no_app_includes(billing):
    with pytest.raises(ConfigError, match=r"belongs to the collection 'billing' that no app includes: call app.include"):
        billing.jobs["billing.charge"].using(max_attempts=1).enqueue_sync(1)
    with pytest.raises(ConfigError, match="no app includes"):
        billing.jobs["billing.charge"].enqueue_sync(1)


async def test_a_direct_call_needs_no_app(billing):
    assert await billing.jobs["billing.charge"](2) == 2


async def test_middleware_is_around_its_own_jobs_only(billing):
    app, seen = Tenure("postgresql://nowhere.invalid/test"), []

    @billing.middleware
    async def note(ctx, call_next):
        seen.append(ctx.kind)
        return await call_next()

    @app.job
    async def other() -> None: ...

    app.include(billing)
    with run_inline(app):
        await other.enqueue()
        await billing.jobs["billing.charge"].enqueue(1)
    assert seen == ["billing.charge"]


def test_twice_and_by_several_apps(billing):
    first, second = Tenure(retry=2), Tenure()
    first.include(billing)
    first.include(billing)
    second.include(billing)
    assert billing.jobs["billing.charge"]._runtime is second._runtime
    assert "billing.charge" in first.kinds


def test_two_collections_may_use_the_same_names():
    app, one, two = Tenure(), Jobs(prefix="one"), Jobs(prefix="two")
    for collection in (one, two):

        @collection.job
        def cleanup() -> None: ...

    app.include(one, two)
    assert sorted(app.kinds) == ["one.cleanup", "two.cleanup"]


def test_the_same_name_twice_is_refused():
    app, one, two = Tenure(), Jobs(), Jobs()
    for collection in (one, two):

        @collection.job
        def cleanup() -> None: ...

    app.include(one)
    with pytest.raises(ConfigError, match="defined twice"):
        app.include(two)


def test_mistakes_in_options_are_reported():
    with pytest.raises(ConfigError, match="Jobs\\(\\) has no option 'queu'; did you mean 'queue'"):
        Jobs(queu="x")
