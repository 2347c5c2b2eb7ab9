"""`tenure bench`: measures in a schema of its own, and leaves nothing behind."""

from __future__ import annotations

import json
import signal
import tempfile
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from tenure.simulate import bench
from tenure.simulate.bench import BACKLOG, BenchTimes
from tests.cli.started import started

PARTS = {"enqueue_one_by_one", "enqueue_in_bulk", "wakeup", "drain"}


@pytest.fixture(autouse=True)
def restored():
    """The module's app is configured for the measurement."""
    before = dict(bench.app.given)
    yield
    bench.app.given.clear()
    bench.app.given.update(before)
    bench.app.configure()


def schemas(sql) -> list[str]:
    return [name for (name,) in sql("select nspname::text from pg_namespace where nspname like 'tenure\\_bench\\_%%'")]


def test_it_measures_in_a_schema_of_its_own_and_leaves_the_jobs_of_others_alone(line, dsn, sql, enqueue_job):
    waiting = enqueue_job()
    before = sql("select * from tenure.all_jobs")
    found = line.json("bench", "--dsn", dsn, "--seconds", 1, "-c", 7, TENURE_DSN="postgresql://nowhere.invalid/none")
    assert found.keys() == {"postgresql", "python", "cores", *PARTS}
    assert all(found[part]["jobs"] > 0 for part in PARTS)
    assert all(found[part]["per_second"] > 0 for part in PARTS - {"wakeup"})
    assert 0 < found["wakeup"]["p50_ms"] <= found["wakeup"]["p99_ms"]
    assert found["drain"]["concurrency"] == 7
    assert [str(row[0]) for row in sql("select id from tenure.jobs")] == [waiting]
    assert sql("select * from tenure.all_jobs") == before
    assert sql("select count(*) from tenure.workers") == [(0,)]
    assert schemas(sql) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_stops_it_and_the_schema_is_dropped(tmp_path, dsn, sql, number):
    with started(tmp_path, "bench", "--dsn", dsn, "--seconds", "600") as process:
        assert process.says("which is dropped at the end")
        assert len(schemas(sql)) == 1
        process.signal(number)
        assert process.ends() == 130
    assert schemas(sql) == []


def test_a_role_that_may_not_create_schemas_is_refused_with_the_remedy(line, dsn, sql):
    sql("create role bench_guest")
    try:
        answer = line("bench", "--dsn", make_conninfo(dsn, options="-c role=bench_guest"), "--seconds", 1)
    finally:
        sql("drop role bench_guest")
    assert answer.exit_code == 3
    assert "use a role that may create schemas in this database, or another database" in answer.stderr


def test_a_server_that_cannot_be_reached_is_one_line(line):
    answer = line("bench", "--dsn", "postgresql://localhost:1/none")
    assert answer.exit_code == 1
    assert len(answer.stderr.splitlines()) == 1


def test_routes_of_the_project_do_not_move_its_jobs(tmp_path, monkeypatch):
    """In another queue, the backlog would not be paused while wake-ups are measured."""
    (tmp_path / "tenure.toml").write_text('[routes]\n"*" = "elsewhere"\n')
    monkeypatch.chdir(tmp_path)
    bench.app.configure(dsn="postgresql://localhost/none")
    assert bench.nothing.call(1, "welcome", "ada").fields.queue == BACKLOG


def test_the_parts_take_the_given_time_together():
    times = BenchTimes.of(20)
    assert times.one_by_one + times.in_bulk + times.wakeups + times.drain == pytest.approx(20)


@pytest.mark.slow
def test_without_a_database_it_uses_a_temporary_one(sql):
    """And not the one that is set."""
    with tempfile.TemporaryDirectory(prefix="tenure-try-") as folder:
        temporary = Path(folder, "tmp")
        for part in (Path(folder), temporary):
            part.mkdir(exist_ok=True)
            part.chmod(0o711)
        settings = {"TMPDIR": str(temporary), "TENURE_DSN": "postgresql://nowhere.invalid/none"}
        with started(Path(folder), "bench", "--seconds", "1", "--json", **settings) as process:
            assert process.ends() == 0
            assert json.loads(process.said).keys() >= PARTS
        assert [path.name for path in Path(folder).rglob("*")] == ["tmp"]
