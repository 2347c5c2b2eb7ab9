"""The text of notifications is in one module: everything else uses `Wakeup`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tenure
from tenure.model.wakeup import Topic

SOURCE = Path(tenure.__file__).parent
WORDS = {topic.value for topic in Topic if topic.value}
PREFIXES = {f"{word} " for word in WORDS}
PACKAGES = ("store", "worker", "leader", "client", "manager")
MODULES = [SOURCE / "inprocess.py", *(path for name in PACKAGES for path in sorted((SOURCE / name).rglob("*.py")))]


def payloads_in(source: str) -> list[str]:
    """f"jobs {queue}" and "jobs " anywhere; "due" where it is sent, or compared with what was received."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.JoinedStr(values=[ast.Constant(value=text), ast.FormattedValue(conversion=-1)]) if text in PREFIXES:
                found.append(ast.unparse(node))
            case ast.Call(func=ast.Attribute(attr=name), args=parts):
                words = PREFIXES | (WORDS if name.strip("_") in ("notify", "on_wakeup", "send", "startswith", "parse") else set())
                found += _constants(parts, words)
            case ast.Compare(left=left, comparators=[ast.Constant() | ast.Tuple() as right]):
                if "wakeup" in ast.unparse(left) or "payload" in ast.unparse(left):
                    found += _constants([right], WORDS | PREFIXES)
    return found


def _constants(parts: list[ast.expr], words: set[str]) -> list[str]:
    nodes = [node for part in parts for node in (part.elts if isinstance(part, ast.Tuple | ast.List) else [part])]
    return [ast.unparse(node) for node in nodes if isinstance(node, ast.Constant) and node.value in words]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('self._notify(f"jobs {queue}")', 1),
        ('payload.startswith("jobs")', 1),
        ('words.add("jobs ")', 1),
        ('session.notify("due")', 1),
        ('wakeup in ("due", "limits")', 2),
        ('raise ValueError(f"jobs {ids} are running")', 0),
        ('yield "due", job.run_at', 0),
    ],
)
def test_bare_words_are_found(source, found):
    assert len(payloads_in(source)) == found


def test_no_other_module_writes_or_reads_the_text_of_a_wakeup():
    found = {str(path.relative_to(SOURCE)): payloads_in(path.read_text("utf-8")) for path in MODULES}
    assert len(found) > 50
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_no_statement_contains_the_text_of_a_notification():
    """Statements receive it as a parameter."""
    statements = sorted(SOURCE.rglob("*.sql"))
    assert statements
    assert [path.name for path in statements if re.search(r"pg_notify\s*\([^()]*'", path.read_text("utf-8"))] == []
