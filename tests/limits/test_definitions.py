"""What can be said of limits in code, and what is refused with the way out."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tenure import ConfigError, Limit, Rate, Tenure


@dataclass
class Message:
    tenant_id: int


@pytest.fixture
def app() -> Tenure:
    return Tenure("postgresql://nowhere")


def rules(app, **options):
    @app.job(**options)
    async def work(tenant_id: int, region: str = "eu") -> None: ...

    return app.kinds.limits.get("kind:work")


def test_what_is_declared(app):
    assert rules(app) is None
    assert rules(Tenure(), concurrency=Limit(5)) == {"concurrency": 5}
    assert rules(Tenure(), concurrency=5) == {"concurrency": 5}
    bounds = [Limit(20), Limit(1, per="tenant_id")]
    both = rules(Tenure(), concurrency=bounds, rate=Rate(100, "1m", per="tenant_id"), fair_by="tenant_id")
    assert both == {"concurrency": 20, "concurrency_per_key": 1, "rate_per_key": [100, 60.0], "fair": True, "key": "tenant_id"}
    assert rules(Tenure(), rate=Rate(3, "1s")) == {"rate": [3, 1.0]}


def test_a_call_that_leaves_the_key_out_belongs_to_the_group_of_its_default(app):
    assert rules(app, concurrency=Limit(1, per="region")) == {"concurrency_per_key": 1, "key": "region", "otherwise": "eu"}


@pytest.mark.parametrize("path", ["message.tenant_id", "tenant_id"])
def test_the_path_into_a_single_model_is_that_of_its_own_object(app, path):
    @app.job(concurrency=Limit(1, per=path))
    async def work(message: Message) -> None: ...

    assert app.kinds.limits["kind:work"]["key"] == "tenant_id"


def test_a_queue_is_limited_once(app):
    app.limit(queue="mail", concurrency=Limit(1))
    app.limit(queue="mail", concurrency=Limit(1))
    assert app.kinds.limits == {"queue:mail": {"concurrency": 1}}
    with pytest.raises(ConfigError, match="limited twice"):
        app.limit(queue="mail", concurrency=Limit(2))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"concurrency": "five"}, "give Limit"),
        ({"concurrency": True}, "give Limit"),
        ({"concurrency": [Limit(1), Limit(2)]}, "given twice"),
        ({"concurrency": Limit(1, per="tenant_id"), "fair_by": "region"}, "several keys"),
        ({"concurrency": Limit(1, per="tenant")}, "no parameter named 'tenant'"),
        ({"rate": 100}, "give Rate"),
        ({"rate": [Rate(1, "1s"), Rate(2, "1s")]}, "given twice"),
    ],
)
def test_nonsense_is_refused_with_the_way_out(app, options, told):
    with pytest.raises(ConfigError, match=told):
        rules(app, **options)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Limit(-1), "whole number"),
        (lambda: Limit(1.5), "whole number"),
        (lambda: Limit(1, per=lambda message: message), "takes a path"),
        (lambda: Limit(1, per="a..b"), "give a path"),
        (lambda: Rate(0, "1s"), "whole number"),
        (lambda: Rate(1, "0s"), "too short"),
        (lambda: Rate(1, "soon"), "not a duration|cannot be read|use a timedelta"),
        (lambda: Tenure().limit(queue="mail"), "give a name without line breaks, and"),
        (lambda: Tenure().limit(queue="", concurrency=Limit(1)), "must be a name"),
    ],
)
def test_values_that_cannot_be_meant(make, told):
    with pytest.raises(ConfigError, match=told):
        make()
