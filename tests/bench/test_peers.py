"""The comparison with other queues, in small runs of Tenure and the bare loop. No other queue is installed here."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from benchmarks import bare_drain, machine
from benchmarks.figures import Figures
from benchmarks.peers import report
from benchmarks.peers.comparison import Comparison
from benchmarks.peers.contestant import Contestant, figure_of, url
from benchmarks.peers.environments import NotAvailableError, python_of
from benchmarks.peers.protocol import Age, Timed, receive
from benchmarks.peers.registry import BARE, PEERS, TENURE, Candidate
from benchmarks.peers.rows import AIMS, ROWS
from benchmarks.peers.scripts import Script
from benchmarks.peers.sizes import PeerSizes
from benchmarks.server import open_server
from rich.console import Console

pytestmark = pytest.mark.slow

TINY = PeerSizes(rounds=1, jobs=60, singles=5, wakeups=5, steady=10)


@pytest.fixture
def server(server_dsn):
    with open_server(server_dsn) as server:
        yield server


@pytest.mark.parametrize("candidate", [TENURE, BARE], ids=lambda candidate: candidate.name)
def test_enqueues_and_drains(server, candidate):
    script, figures = Script(candidate, python_of(candidate)), Figures()
    contestant = Contestant(server, script, script.describe(), TINY, figures)
    with contestant.in_new_database():
        contestant.enqueue_single()
        contestant.enqueue_bulk("bulk")
        contestant.drain(1)
    for key in ("single", "bulk", "drain_1", "drain_1_wal"):
        assert figures.median(figure_of(candidate.name, key)) > 0


def test_a_comparison_has_every_row_and_names_missing_systems(server):
    comparison = Comparison(server, TINY, [Candidate("absent")])
    comparison.run()
    assert list(comparison.missing) == ["absent"]
    names = report.present(comparison)
    assert names == ["tenure", "bare"]
    for row in ROWS:
        for name in names:
            assert len(comparison.figures.rounds(figure_of(name, row.key))) == TINY.rounds
    surveyed = machine.survey(server)
    report.show(Console(file=(shown := StringIO()), width=200), surveyed, comparison, quick=True)
    assert "absent: not available" in shown.getvalue()
    assert "drain, one process / bare" in shown.getvalue()
    assert len(report.as_json(surveyed, comparison, quick=True)["rows"]) == 2 * len(ROWS)
    assert "| drain, one process (jobs/s) |" in report.as_markdown(surveyed, comparison)


def test_a_bare_drain_by_two_processes(server):
    assert bare_drain.measure(server, 60, 2).rate > 0


def test_a_peer_that_cannot_be_installed_gives_the_reason(tmp_path):
    absent = Candidate("absent", (str(tmp_path / "no-such-package"),))
    with pytest.raises(NotAvailableError, match="no-such-package"):
        python_of(absent, tmp_path)


def test_every_peer_has_a_script_and_every_aim_a_row():
    for candidate in (TENURE, BARE, *PEERS):
        assert Path(*candidate.module.split(".")).with_suffix(".py").exists()
    assert {aim.row for aim in AIMS} <= {row.key for row in ROWS}
    assert {aim.peer for aim in AIMS} <= {"bare", *(peer.name for peer in PEERS)}


def test_messages_are_read_and_other_lines_are_not():
    assert receive('{"message": "Age", "age_ms": 1.5}') == Age(1.5)
    assert receive('{"message": "Timed", "jobs": 3, "timed": 2, "seconds": 0.5}') == Timed(3, 2, 0.5)
    for line in ("", "a log line", "[]", "{}", '{"message": "Unknown"}', '{"message": "Age", "other": 1}'):
        assert receive(line) is None


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("host=/run/pg port=5433 user=me dbname=shop", "postgresql://me@/shop?host=%2Frun%2Fpg&port=5433"),
        ("postgresql://me:p%40ss@db/shop", "postgresql://me:p%40ss@/shop?host=db"),
    ],
)
def test_a_dsn_as_url(dsn, expected):
    assert url(dsn) == expected
