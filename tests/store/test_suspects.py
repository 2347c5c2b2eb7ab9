"""A job that was in two crashes runs alone. Statements and indexes have that number in their text, and must agree on it."""

from __future__ import annotations

import re
from pathlib import Path

import tenure.store
from tenure.store.workers import SUSPECT_CRASHES

STORE = Path(tenure.store.__file__).parent
COMPARED = re.compile(r"\bcrashes\s*>=\s*(\d+)")


def test_all_statements_and_indexes_use_the_same_number_of_crashes():
    found = {
        str(path.relative_to(STORE)): set(map(int, COMPARED.findall(path.read_text("utf-8")))) for path in STORE.rglob("*.sql")
    }
    compared = {name: numbers for name, numbers in found.items() if numbers}
    assert {"sql/jobs/claim_jobs.sql", "sql/limits/claim_limited.sql", "sql/workers/renew_workers.sql"} <= compared.keys()
    assert {name: numbers for name, numbers in compared.items() if numbers != {SUSPECT_CRASHES}} == {}
