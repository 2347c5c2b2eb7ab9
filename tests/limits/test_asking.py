"""Limits for people: explain, list, set and reset, by client and by command line."""

from __future__ import annotations

import re

import pytest

from tenure import ConfigError, Limit, Rate
from tenure.store import limits
from tests.cli.conftest import CommandLine


@pytest.fixture
def line(dsn: str) -> CommandLine:
    return CommandLine(dsn)


def codes(explanation):
    return [(reason.code, reason.text) for reason in explanation.reasons]


@pytest.fixture
def work(app):
    @app.job(concurrency=[Limit(2), Limit(1, per="tenant_id")])
    async def work(tenant_id: str) -> None: ...

    return work


async def test_explain_reports_which_limit_is_full(app, work, database):
    database.limit("kind:work", concurrency=2, concurrency_per_key=1, key="tenant_id")
    worker = database.worker()
    handles = [await work.enqueue(tenant) for tenant in "aab"]
    database.take(worker, limit=1)
    [(code, text), *_] = codes(await handles[1].explain())
    assert (code, text.split(";")[0]) == ("limit_full", "limit kind:work/tenant_id=a is full: 1 of 1 running")
    assert "limit_full" not in dict(codes(await handles[2].explain()))
    database.take(worker)
    told = dict(codes(await (await work.enqueue("c")).explain()))
    assert told["limit_full"].startswith("limit kind:work is full: 2 of 2 running")
    assert (await handles[1].status()).limit_group == "kind:work/tenant_id=a"


async def test_explain_reports_a_limit_that_is_removed(app, work, database):
    database.limit("kind:work", concurrency=2)
    database.worker()
    handle = await work.enqueue("a")
    database.run(limits.reset("kind:work", declared=True))
    assert "limit_removed" in dict(codes(await handle.explain()))


async def test_explain_reports_when_the_next_may_start(app, work, database):
    database.limit("kind:work", rate=[1, 60])
    first, second = await work.enqueue("a"), await work.enqueue("a")
    database.take(database.worker(), limit=1)
    assert (await first.status()).state == "running"
    told = dict(codes(await second.explain()))
    assert re.search(r"the rate of kind:work is used up \(1 starts in 1m\): next start in (1m|\d+s)", told["rate"])


async def test_jobs_ahead_are_those_of_the_same_limit_group(app, work, database):
    database.limit("kind:work", concurrency=2, concurrency_per_key=1, key="tenant_id")
    database.worker()
    for tenant in "aaab":
        handle = await work.enqueue(tenant)
    assert "ahead" not in dict(codes(await handle.explain()))
    assert "3 jobs are ahead" in dict(codes(await (await work.enqueue("a")).explain()))["ahead"]


async def test_what_a_client_sets_and_takes_back(app, database):
    client = app.client()
    assert await client.limits() == []
    assert await client.set_limit("queue:mail", concurrency=3, rate=Rate(9, "1s", per="to")) == {
        "concurrency": 3,
        "rate_per_key": [9, 1.0],
        "key": "to",
    }
    assert (await client.set_limit("queue:mail", rate=None, by="ann")).get("rate_per_key") is None
    [status] = await client.limits()
    assert (status.name, status.override_by, status.running, status.waiting) == ("queue:mail", "ann", 0, False)
    assert await client.reset_limit("queue:mail") == {}
    assert await client.reset_limit("queue:mail") is None
    assert await client.limits() == []


async def test_one_bound_does_not_get_another_key_by_the_way(app, database):
    client = app.client()
    await client.set_limit("kind:work", concurrency=Limit(1, per="tenant_id"))
    with pytest.raises(ConfigError, match="a limit has one key"):
        await client.set_limit("kind:work", rate=Rate(1, "1s", per="region"))
    await client.set_limit("kind:work", concurrency=None, rate=Rate(1, "1s", per="region"))


@pytest.mark.parametrize("name", ["work", "kind:", "kinds:work", "kind:a\nb"])
async def test_a_name_that_is_none_is_refused(app, name):
    with pytest.raises(ConfigError, match="not the name of a limit"):
        await app.client().set_limit(name, concurrency=1)


async def test_nothing_said_is_refused(app):
    with pytest.raises(ConfigError, match="is not changed"):
        await app.client().set_limit("kind:work")


def test_limits_on_the_command_line(line):
    shown = line("limits", "list")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert line.json("limits", "list") == {"limits": []}
    answer = line("limits", "set", "kind:work", "--concurrency", "20,1/tenant_id", "--rate", "100:1m", "--by", "ann")
    assert answer.exit_code == 0, answer.output
    assert "20 at a time, 1 at a time per tenant_id, 100:1m starts" in answer.stdout
    [limit] = line.json("limits", "list")["limits"]
    assert (limit["name"], limit["override_by"]) == ("kind:work", "ann")
    assert limit["rules"] == {"concurrency": 20, "concurrency_per_key": 1, "rate": [100, 60.0], "key": "tenant_id"}
    row = line("limits", "list").stdout.splitlines()[1]
    assert row.split()[:6] == ["kind:work", "0", "20", "1", "100:1m", "-"]
    assert line.json("limits", "set", "kind:work", "--rate", "none", "--fair-by", "tenant_id")["rules"]["fair"] is True
    assert line.json("limits", "reset", "kind:work") == {"limit": "kind:work", "reset": True, "rules": {}}
    assert line("limits", "reset", "kind:work").stdout == "nothing was set for kind:work\n"


@pytest.mark.parametrize(
    "words",
    [
        ["set", "work", "--concurrency", "5"],
        ["set", "kind:work"],
        ["set", "kind:work", "--concurrency", "five"],
        ["set", "kind:work", "--rate", "5"],
        ["set", "kind:work", "--rate", "5:soon"],
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(line, words):
    answer = line("limits", *words)
    assert answer.exit_code == 2
    assert "tenure: " in answer.stderr
