"""The catalogue as a list: complete, described, and built from public names."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import tenure.simulate
from tenure.simulate import expectations
from tenure.simulate.catalogue import JOBS, app, describe
from tenure.store.workers import MAX_CRASHES
from tests.simulate.inputs import ALL_KINDS, input_of

FOLDER = Path(tenure.simulate.__file__).parent
FINAL = ("completed", "failed", "canceled", "dead letter")


def test_the_catalogue_is_large_and_all_of_it_is_in_the_app():
    assert len(JOBS) >= 24
    assert set(JOBS) == set(app.kinds)


def test_every_kind_says_in_one_line_what_it_does_and_how_it_ends():
    entries = describe()
    assert [entry.kind for entry in entries] == list(JOBS)
    for entry in entries:
        assert entry.does.endswith("."), entry
        assert entry.ends.startswith(FINAL), entry
    assert all("\n" not in (job.__doc__ or "\n") for job in JOBS.values())


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_kind_takes_a_seed(kind):
    parameters = inspect.signature(JOBS[kind]).parameters
    assert parameters["seed"].annotation == "int"
    assert JOBS[kind].call(**input_of(kind)).kind == kind


def test_the_catalogue_knows_after_how_many_crashes_a_job_is_quarantined():
    assert expectations.CRASHES_ALLOWED == MAX_CRASHES


def test_the_catalogue_uses_public_names_only():
    """As any app would: it imports from `tenure` itself. The bench also reads counts that no app needs."""
    used = set()
    for file in set(FOLDER.glob("*.py")) - {FOLDER / "bench.py"}:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                used.add(node.module)
            elif isinstance(node, ast.Import):
                used.update(name.name for name in node.names)
    ours = {module for module in used if module is not None and module.split(".")[0] == "tenure"}
    assert {module for module in ours if module != "tenure" and not module.startswith("tenure.simulate")} == set()
    assert "psycopg" not in used
