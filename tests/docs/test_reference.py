"""The reference is whole: what its tables list is what the code has."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

import tenure.events
from tenure import Context, Handle, JobStatus, Tenure
from tenure.client.client import Client
from tenure.client.filters import FilterWords
from tenure.client.job import Job
from tenure.client.options import CallOptions
from tenure.model.definitions import JobOptions
from tenure.settings import Settings
from tenure.worker.run.abort import AbortReason
from tenure.worker_settings import WorkerSettings
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "reference.md").read_text("utf-8")


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, f"section {title!r} not found"
    return found[1]


def tables(title: str) -> list[dict[str, str]]:
    """By name, the text of the last column; names are all that the first column has in code style."""
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", section(title), re.MULTILINE):
        rows = [row.strip("|\n").split(" | ") for row in table.splitlines()[2:]]
        found.append({name: row[-1] for row in rows for name in re.findall(r"`(\w+)", row[0])})
    return found


def names(title: str) -> set[str]:
    [only] = tables(title)
    return set(only)


def public(type_: type) -> set[str]:
    return {name for name in dir(type_) if not name.startswith("_")}


def with_sync_versions(listed: set[str], *without: str) -> set[str]:
    """Methods that can be awaited have a sync version."""
    return listed | {f"{name}_sync" for name in listed if name not in without}


def options(function: Callable[..., Any], *but: str) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", *but}


def test_what_an_app_can_do():
    assert names("`Tenure`") == public(Tenure)


def test_the_options_of_a_job():
    assert names("`@app.job`") == set(JobOptions.__annotations__)


def test_the_options_of_a_call():
    on_a_job, of_using = tables("A call")
    assert set(on_a_job) == public(Job)
    assert set(of_using) == set(CallOptions.__annotations__)


def test_what_a_handler_can_do():
    assert names("`Context`") == public(Context)


def test_every_reason_for_an_abort_is_reported():
    told = section("`Context`").split("Reasons:")[1]
    assert set(re.findall(r"`(\w+)`", told)) == set(AbortReason.__args__)


def test_what_a_handle_can_do():
    assert with_sync_versions(names("`Handle`"), "id", "kind", "enqueued_at", "existed", "same_input") == public(Handle)


def test_the_fields_of_a_status():
    assert names("`JobStatus`") == {field.name for field in dataclasses.fields(JobStatus)}


def test_what_a_client_can_do():
    assert with_sync_versions(names("`Client`"), "handle") == public(Client)


def test_the_filters_of_a_client():
    listed = section("`Client`").split("Filters:")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == set(FilterWords.__annotations__)


def test_the_parameters_of_methods_are_those_shown():
    """Of all that is written as a call, each parameter exists."""
    for title, owner in {"`Handle`": Handle, "`Client`": Client, "`Context`": Context, "`Tenure`": Tenure}.items():
        for method, shown in re.findall(r"`(\w+)\(([^)]*)\)`", section(title)):
            if shown and hasattr(owner, method):
                given = {re.split(r"[= ]", part.strip().lstrip("*"))[0] for part in shown.split(",")}
                unknown = given - options(getattr(owner, method)) - {"settings", "timeout"}
                assert unknown == set(), f"{title}: {method} has no {unknown}"


def exported() -> dict[str, object]:
    return {name: getattr(tenure, name) for name in tenure.__all__}


def test_the_events_and_their_fields():
    events = {name: getattr(tenure.events, name) for name in tenure.events.__all__}
    listed = tables("Events")[0]
    # An error has the same name, so they are listed with their module.
    listed.pop("tenure")
    listed |= dict(re.findall(r"^\| `tenure\.events\.(\w+)` \| (.*) \|$", section("Events"), re.MULTILINE))
    assert set(listed) == set(events) - {"Event"}
    for name, shown in listed.items():
        fields = {field.name for field in dataclasses.fields(events[name])}
        told = set(re.findall(r"`(\w+)`", shown))
        if shown.startswith("the same"):
            told |= set(re.findall(r"`(\w+)`", listed["JobStarted"]))
        assert told == fields, name


def test_the_tree_of_errors_is_that_of_the_code():
    tree = re.search(r"```\n(.*?)```", section("Errors"), re.DOTALL)[1]
    drawn: dict[str, str | None] = {}
    path: list[str] = []
    for line in tree.splitlines():
        indent, name = re.match(r"([│├└─ ]*)(\w+)", line).groups()
        path[len(indent) // 4 :] = [name]
        drawn[name] = path[-2] if len(path) > 1 else None
    errors = [value for value in exported().values() if isinstance(value, type) and issubclass(value, tenure.TenureError)]
    roots = {error.__name__: error.__bases__[0].__name__ for error in errors}
    assert drawn == {**roots, "TenureError": None}


def test_the_settings_and_their_defaults():
    common, retry, leader, workers = tables("Settings")
    common |= {f"retry_{name}": shown for name, shown in retry.items()}
    common |= {f"leader_{name}": shown for name, shown in leader.items()}
    assert set(common) == {field.name for field in dataclasses.fields(Settings)} - {"workers", "pools"}
    assert set(workers) == {field.name for field in dataclasses.fields(WorkerSettings)}
    for row in re.findall(r"^\| `(\w+)` \| (\d+) \|", section("Settings"), re.MULTILINE):
        name, shown = row
        owner = WorkerSettings() if name in workers else Settings().retry if name in retry else Settings()
        assert float(shown) == getattr(owner, f"leader_{name}" if name in leader else name), name


def test_the_keys_that_sql_takes():
    folder = files("tenure.store").joinpath("functions")
    schema = "".join(file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".sql"))
    records = re.findall(r"jsonb_to_recordset\(\w+\) as (?:g)?\(([^)]*)\)", schema)
    read = {column.split()[0] for record in records for column in record.split(",")}
    assert names("From SQL") == read - {"existing_id", "differs", "chain", "dependants", "blockers", "open"} | {
        "after",
        "on_failure",
    }


@pytest.mark.parametrize("name", ["TENURE_LOG", "TENURE_LOG_FORMAT", "TENURE_PG_BIN"])
def test_the_variables_that_are_not_settings_are_read_somewhere(name):
    source = ROOT / "src" / "tenure"
    assert any(f'"{name}"' in file.read_text("utf-8") for file in source.rglob("*.py"))
