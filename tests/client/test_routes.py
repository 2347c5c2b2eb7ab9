"""`[routes]`: settings decide in which queue, and with which priority, jobs of a kind run."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tenure import ConfigError, Tenure
from tenure.cli.main import cli
from tenure.model.routes import Route, route_of, to_routes
from tenure.settings import Settings
from tenure.testing import Recorder, drain, enqueued

TABLE = {"billing.*": "money", "*.report": {"queue": "reports", "priority": "low"}, "urgent": {"priority": 100}}


def test_the_first_pattern_that_fits_counts():
    routes = to_routes(TABLE)
    assert route_of(routes, "billing.report") == Route("billing.*", "money", None)
    assert route_of(routes, "sales.report") == Route("*.report", "reports", 25)
    assert route_of(routes, "report") is None


def test_as_the_json_of_a_table():
    assert to_routes(json.dumps(TABLE)) == to_routes(TABLE)


@pytest.mark.parametrize("given", ["billing.*=money, *.x=other", {"billing.*": "money", "*.x": "other"}])
def test_as_a_table_or_as_the_text_of_a_variable(given):
    assert to_routes(given) == (Route("billing.*", "money", None), Route("*.x", "other", None))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("billing", "'billing' is not a route: write PATTERN=QUEUE"),
        ('{"billing.*": money}', "is not valid JSON .*: correct it, or write PATTERN=QUEUE"),
        ({"a": 3}, "'a' leads to 3: give the name of a queue"),
        ({"a": {"queu": "b"}}, "the route 'a' has no option 'queu'; did you mean 'queue'?"),
        ({"a": {"priority": "hgih"}}, "hgih"),
        (7, "7 is not a table of patterns and queues"),
    ],
)
def test_mistakes_are_reported(given, told):
    with pytest.raises(ConfigError, match="(?s).*" + told.replace("?", r"\?")):
        Settings.load(routes=given)


def test_from_a_file_and_the_environment(tmp_path):
    (tmp_path / "tenure.toml").write_text('[routes]\n"billing.*" = "money"\n"*.report" = {queue = "reports", priority = "low"}\n')
    from_file = Settings.load(folder=tmp_path, environ={})
    assert from_file.routes == (Route("billing.*", "money", None), Route("*.report", "reports", 25))
    assert Settings.load(folder=tmp_path, environ={"TENURE_ROUTES": "a=b"}).routes == (Route("a", "b", None),)


async def test_the_route_wins_over_the_definition_and_the_call_over_the_route():
    app = Tenure("postgresql://nowhere.invalid/test", routes=TABLE)

    @app.job(name="sales.report", queue="default", priority="high")
    async def report() -> None: ...

    with Recorder(app) as recorder:
        await report.enqueue()
        await report.using(queue="mine", priority=1).enqueue()
        await app.enqueue("billing.elsewhere")
        await app.enqueue("elsewhere")
    assert [(job.queue, job.priority) for job in recorder.jobs] == [("reports", 25), ("mine", 1), ("money", 50), ("default", 50)]


async def test_workers_serve_the_queues_to_which_their_kinds_are_routed(app):
    app.configure(routes={"*": "elsewhere"})

    @app.job
    async def work() -> str:
        return "done"

    @app.cron("@daily")
    async def daily() -> None: ...

    await work.enqueue()
    [run] = await drain(app)
    assert run.output == "done"
    assert [job.queue for job in await enqueued(app)] == ["elsewhere"]
    assert [schedule.queue for schedule in await app.schedules.list()] == ["elsewhere"]


async def test_a_schedule_that_is_created_at_run_time_has_the_route_of_its_job(app):
    app.configure(routes=TABLE)

    @app.job(name="sales.report", priority="high")
    async def report() -> None: ...

    made = await app.schedules.create("daily", report, "0 9 * * *")
    assert (made.queue, made.priority) == ("reports", 25)
    made = await app.schedules.create("urgent", "sales.report", "0 9 * * *", queue="mine", priority=99)
    assert (made.queue, made.priority) == ("mine", 99)
    await app.close()


def test_defining_jobs_reads_no_settings(monkeypatch):
    monkeypatch.setattr(Settings, "load", lambda **_: pytest.fail("settings were read"))
    app = Tenure()

    @app.cron("@daily")
    @app.job
    async def work() -> None: ...

    work.using(priority="low")


def test_the_command_that_shows_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENURE_ROUTES", "a=b")
    shown = json.loads(CliRunner().invoke(cli, ["config", "--json"]).stdout)["settings"]
    assert {"name": "routes", "value": {"a": {"queue": "b", "priority": None}}, "source": "TENURE_ROUTES"} in shown
