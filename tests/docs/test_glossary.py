"""The glossary is sorted, and has every state, duty, table, column, event and code that a user meets."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

import tenure.events
from tenure import State
from tenure.leader.duties.registry import DUTIES
from tenure.worker.run.abort import AbortReason
from tests.docs.pages import ROOT

CONCEPTS = (ROOT / "docs" / "concepts.md").read_text("utf-8")
GLOSSARY = CONCEPTS.partition("\n## Glossary\n")[2]
ROWS = [line.strip("|").split(" | ") for line in GLOSSARY.splitlines() if line.startswith("| ")][1:]
TERMS = [row[0].strip() for row in ROWS]

_PLAIN = """
    acquired action after app applied at before began busy by changed changes checked created day definition died due ended
    error every expires finished first forget hash host hour how id ids ip last line lines max mb memory message metadata minute
    name next number oldest parent payload per percent phase pid purpose reason recorded request revoked rules schema seconds
    secret since source span started state status subject taken times timezone total until updated used what
"""
PLAIN_WORDS = frozenset(_PLAIN.split())
"""Words that mean in a column what they mean everywhere."""

COLUMNS = """
    select table_name, column_name from information_schema.columns
     where table_schema = 'tenure' and table_name !~ '^history_'
"""


def described(term: str) -> str:
    [row] = [row for row in ROWS if row[0].strip() == term]
    return row[1]


def test_terms_are_sorted_and_unique():
    assert sorted(set(TERMS), key=str.lower) == TERMS


def test_every_state_is_a_term():
    assert {state.value.replace("_", " ") for state in State} <= set(TERMS)


def test_every_duty_is_a_term():
    assert set(re.findall(r"`(\w+)`", described("duty"))) == set(DUTIES)
    assert set(DUTIES) <= set(TERMS)


def test_every_reason_of_an_abort_is_listed():
    assert set(re.findall(r"`(\w+)`", described("abort"))) == set(AbortReason.__args__)


def test_every_event_appears():
    assert {name for name in tenure.events.__all__ if not re.search(rf"`(tenure\.events\.)?{name}\b", GLOSSARY)} == set()


def test_every_reason_of_explain_is_listed():
    page = (ROOT / "docs" / "how-to" / "find-and-control.md").read_text("utf-8")
    table = re.search(r"^\| codes \|.*?\n\n", page.partition("\n### Reasons\n")[2], re.DOTALL | re.MULTILINE)[0]
    first_cells = [row.split(" | ")[0] for row in table.splitlines()[2:]]
    assert set(re.findall(r"`(\w+)`", " ".join(first_cells))) == set(reason_codes())


def reason_codes() -> Iterator[str]:
    for file in (ROOT / "src" / "tenure" / "client").glob("explain*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Reason" and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)


def test_every_table_is_in_the_glossary_or_under_data_retention():
    store = ROOT / "src" / "tenure" / "store"
    created = {
        name for file in store.rglob("*.sql") for name in re.findall(r"create table tenure\.(\w+)", file.read_text("utf-8"))
    }
    assert {name for name in created if not re.search(rf"`{name}\b", CONCEPTS)} == set()


def test_every_column_appears_or_consists_of_terms_and_plain_words(sql: Callable[..., list[tuple[Any, ...]]]):
    named = set(re.findall(r"`\w+\.(\w+)`", GLOSSARY))
    known = PLAIN_WORDS | {word for term in TERMS for word in re.findall(r"\w+", term.lower())}

    def is_known(word: str) -> bool:
        return any(word.removesuffix(ending) in known for ending in ("", "s", "es", "d", "ed"))

    assert {
        f"{table}.{column}" for table, column in sql(COLUMNS) if column not in named and not all(map(is_known, column.split("_")))
    } == set()
