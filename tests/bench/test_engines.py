"""The comparison with other workflow engines, in a small run of Tenure. No other engine is installed here."""

from __future__ import annotations

from io import StringIO

import pytest
from benchmarks import flows, machine, without_flow
from benchmarks.engines.comparison import ROWS, EngineComparison, EngineSizes
from benchmarks.engines.registry import ENGINES, Engine
from benchmarks.server import Server, open_server
from rich.console import Console

TINY = EngineSizes(rounds=1, steps=5, starts=5)


@pytest.fixture
def server(server_dsn):
    with open_server(server_dsn) as server:
        yield server


@pytest.mark.slow
def test_a_comparison_has_every_row_and_the_bare_loop_and_names_missing_systems(server: Server):
    comparison = EngineComparison(server, TINY, [Engine("bare"), Engine("absent")])
    comparison.run()
    assert (comparison.names, list(comparison.missing)) == (["tenure", "bare"], ["absent"])
    surveyed = machine.survey(server)
    comparison.show(Console(file=(shown := StringIO()), width=200), surveyed)
    assert "absent: not available" in shown.getvalue()
    text = comparison.as_markdown(surveyed)
    assert all(f"| {title} | " in text for title in ROWS.values())
    assert "- absent: not available: " in text
    found = comparison.as_json(surveyed)
    assert [(row["key"], row["engine"]) for row in found["rows"]] == [(key, name) for key in ROWS for name in comparison.names]
    assert all(row["figure"] > 0 for row in found["rows"])


def test_each_engine_is_pinned():
    assert all("==" in engine.requirements[0] for engine in ENGINES if engine.requirements)


def test_the_copy_without_flow_can_be_made():
    """It fails when a statement has changed so that its parts of flow are not found any more."""
    with without_flow.copy_without_flow() as copy:
        assert "insert into tenure.chain_endings" not in (copy / "tenure/store/sql/fragments/job_endings.sql").read_text()


@pytest.mark.slow
def test_chains_sleepers_and_a_fan_in_are_measured(server: Server):
    assert flows.measure_links(server, 2) > 0
    assert len(flows.measure_sleepers(server, 5, 1.0)) == 5
    assert flows.measure_fan_in(server, 20) > 0
