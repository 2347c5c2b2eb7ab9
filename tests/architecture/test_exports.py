"""What is public, what importing costs, and what must not be in the source."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import tenure
from tests.processes import run_process

SOURCE = Path(tenure.__file__).parent
REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"
UNFINISHED = ("TODO", "FIXME", "XXX", "HACK")


def test_every_public_name_exists_once_and_in_order():
    assert len(set(tenure.__all__)) == len(tenure.__all__)
    assert sorted(tenure.__all__) == list(tenure.__all__)
    for name in tenure.__all__:
        assert hasattr(tenure, name)
    with pytest.raises(AttributeError, match="no attribute 'Tenuer'"):
        _ = tenure.Tenuer


def test_help_needs_nothing_of_the_product():
    """So that `tenure --help` answers at once."""
    loaded = printed_by(
        "import json, sys, tenure.cli.main; print(json.dumps([m for m in ('asyncio', 'tenure.app') if m in sys.modules]))"
    )
    assert loaded == []


def test_the_reference_lists_every_public_name_and_no_other():
    first_table = re.search(r"(?:^\|.*\n)+", REFERENCE.read_text("utf-8"), re.MULTILINE)
    assert first_table is not None
    rows = re.findall(r"^\| `(\w+)`", first_table[0], re.MULTILINE)
    assert sorted(rows) == sorted(tenure.__all__)


def printed_by(script: str) -> list[str]:
    """What a new interpreter prints as JSON."""
    run = run_process([sys.executable, "-c", script], check=True, timeout=60)
    found: list[str] = json.loads(run.stdout)
    return found


def test_importing_tenure_imports_no_driver_no_validator_and_no_command_line():
    slow = ["psycopg", "pydantic", "click", "rich", "asyncpg", "msgspec", "uvloop"]
    assert printed_by(f"import json, sys\nfrom tenure import *\nprint(json.dumps([m for m in {slow} if m in sys.modules]))") == []


NOT_FOR_AN_ENQUEUE = [
    "tenure.settings",
    "tenure.model.events",
    "tenure.model.suspensions",
    "tenure.client.status",
    "tenure.client.filters",
    "tenure.client.emitting",
    "tenure.store.query",
    "tenure.store.jobs",
    "tenure.leader",
]
"""Each takes milliseconds, mostly for dataclasses. Together they were half of the time of the import."""


def test_importing_the_app_imports_nothing_that_only_a_later_call_needs():
    script = (
        f"import json, sys\nfrom tenure import Tenure\nprint(json.dumps([m for m in {NOT_FOR_AN_ENQUEUE} if m in sys.modules]))"
    )
    assert printed_by(script) == []


def test_the_app_and_its_jobs_are_made_without_settings_and_statements():
    script = f"""
import json, sys
from tenure import Context, Tenure
app = Tenure("postgresql://")
@app.job(queue="mail", max_attempts=5)
async def work(ctx: Context, n: int) -> int:
    return n
print(json.dumps([m for m in {NOT_FOR_AN_ENQUEUE} if m in sys.modules]))
"""
    assert printed_by(script) == []


def test_a_supervisor_imports_neither_the_app_nor_an_engine():
    """It runs no user code. Each of these would cost memory in every supervisor."""
    unneeded = ["pydantic", "pydantic_core", "tenure.app", "tenure.inprocess", "tenure.worker.engine", "tenure.worker.run"]
    unneeded += [
        "tenure.model.kinds",
        "tenure.model.codec",
        "tenure.model.published_kind",
        "tenure.embedded.server",
        "tenure.web",
    ]
    script = f"import json, sys, tenure.cli.worker\nprint(json.dumps([m for m in {unneeded} if m in sys.modules]))"
    assert printed_by(script) == []


def test_defining_a_job_does_no_io_and_needs_no_driver():
    script = """
import json, sys
touched = []
def watch(event, args):
    if event.startswith(("socket.", "subprocess.", "os.fork", "os.exec", "os.posix_spawn", "sqlite3.")):
        touched.append(event)
    if event == "open" and isinstance(args[0], str) and args[0].endswith((".toml", ".env", ".ini")):
        touched.append("open " + args[0])
import tenure
sys.addaudithook(watch)
app = tenure.Tenure()
@app.job
async def work(n: int) -> int:
    return n
app.worker
print(json.dumps(touched + [m for m in ("psycopg",) if m in sys.modules]))
"""
    assert printed_by(script) == []


def test_importing_tenure_does_no_io():
    script = """
import json, sys
import asyncio, logging, typing, weakref, dataclasses, tomllib, concurrent.futures, contextvars, inspect, json
touched = []
def watch(event, args):
    if event.startswith(("socket.", "subprocess.", "os.fork", "os.exec", "os.posix_spawn", "sqlite3.")):
        touched.append(event)
    if event == "open" and isinstance(args[0], str) and not args[0].endswith((".py", ".pyc")) and ".pyc" not in args[0]:
        touched.append("open " + args[0])
sys.addaudithook(watch)
import tenure
print(json.dumps(touched))
"""
    assert printed_by(script) == []


def test_nothing_unfinished_is_in_the_source():
    files = [path for path in SOURCE.rglob("*") if path.suffix in (".py", ".sql", ".html", ".js", ".css")]
    assert files
    pattern = re.compile(rf"\b({'|'.join(UNFINISHED)})\b")
    found = [f"{path.relative_to(SOURCE)}: {hit[0]}" for path in files for hit in pattern.finditer(path.read_text("utf-8"))]
    assert found == []
