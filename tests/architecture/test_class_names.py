"""Every class has a name of its own: a reader who searches for one finds one."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import tenure

SOURCES = Path(tenure.__file__).parent

ALLOWED = {
    "JobCanceled": "the error that a caller of result() gets, and the event of the same fact in tenure.events",
    "JobFailed": "the error that a caller of result() gets, and the event of the same fact in tenure.events",
    "Meta": "Django asks for this name inside a model",
    "Migration": "Django asks for this name in a file of its migrations",
    "Schedule": "the model of Django's admin is named after what it shows, as Django's permissions and addresses are",
}
"""Names that exist more than once, with the reason."""


def test_no_two_classes_have_the_same_name():
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{file.relative_to(SOURCES)}:{node.lineno}")
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in twice.items() if name not in ALLOWED} == {}, "give one of them a more exact name"
    assert ALLOWED.keys() <= twice.keys(), "a name that is unique now needs no exception"
