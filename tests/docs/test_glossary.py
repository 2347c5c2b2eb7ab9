"""The glossary is sorted, and has every state, duty and table that a user meets."""

from __future__ import annotations

import re

from tenure import State
from tenure.leader.duties.registry import DUTIES
from tests.docs.pages import ROOT

CONCEPTS = (ROOT / "docs" / "concepts.md").read_text("utf-8")
GLOSSARY = CONCEPTS.partition("\n## Glossary\n")[2]
ROWS = [line.strip("|").split(" | ") for line in GLOSSARY.splitlines() if line.startswith("| ")][1:]
TERMS = [row[0].strip() for row in ROWS]


def test_terms_are_sorted_and_unique():
    assert sorted(set(TERMS), key=str.lower) == TERMS


def test_every_state_is_a_term():
    assert {state.value.replace("_", " ") for state in State} <= set(TERMS)


def test_every_duty_is_a_term():
    [duties] = [row[1] for row in ROWS if row[0].strip() == "duty"]
    assert set(re.findall(r"`(\w+)`", duties)) == set(DUTIES)
    assert set(DUTIES) <= set(TERMS)


def test_every_table_is_in_the_glossary_or_under_data_retention():
    store = ROOT / "src" / "tenure" / "store"
    created = {
        name for file in store.rglob("*.sql") for name in re.findall(r"create table tenure\.(\w+)", file.read_text("utf-8"))
    }
    assert {name for name in created if not re.search(rf"`{name}\b", CONCEPTS)} == set()
