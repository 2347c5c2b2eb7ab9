"""Puts a fault into a statement of a script, or into a function of the schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg

from tenure.store.query import Query
from tenure.store.statements import _PARAMETER
from tests.interleavings.faults import Fault
from tests.interleavings.steps.step import AnyStep, Script, Step, call, spelled


def plant(fault: Fault, script: Script) -> Script:
    return tuple(_planted(fault, step) for step in script)


def _planted(fault: Fault, step: AnyStep) -> AnyStep:
    if not isinstance(step, Step) or not isinstance(step.sends, Query) or step.sends.name != fault.where:
        return step
    return replace(step, sends=call(step.sends, edited(spelled(fault.where), fault)))


def edited(text: str, fault: Fault) -> str:
    """Edits are written as the files are, with `:name` for parameters."""
    for edit in fault.edits:
        old, new = (_PARAMETER.sub(r"%(\1)s", part) for part in edit)
        assert old in text, f"to plant “{fault.what}”, find a new place in {fault.where}: {old!r} is not there any more"
        text = text.replace(old, new)
    return text


@contextmanager
def planted(dsn: str, fault: Fault) -> Iterator[None]:
    """Inside this block, the function has the fault."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = "select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = 'tenure'::regnamespace and p.proname = %s"
        [(right,)] = connection.execute(found, [fault.where]).fetchall()
        try:
            connection.execute(edited(right, fault), prepare=False)
            yield
        finally:
            connection.execute(right, prepare=False)
