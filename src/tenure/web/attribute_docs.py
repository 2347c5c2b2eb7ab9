"""The texts below the fields of a type, for the description of the API. Python itself does not keep them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any, get_args, get_type_hints

from typing_extensions import is_typeddict


def docs_of(type_: type) -> dict[str, str]:
    """By field. Empty where the source is not available."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(type_)))
    except (OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, str] = {}
    for base in reversed(getattr(type_, "__orig_bases__", ())):
        if inspect.isclass(base):
            found |= docs_of(base)
    [body] = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    for field, after in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            value = after.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = " ".join(value.value.split())
    return found


def types_in(hint: Any, seen: set[type] | None = None) -> Iterator[type]:
    """All dataclasses and typed dictionaries that an annotation contains."""
    seen = set() if seen is None else seen
    if inspect.isclass(hint) and (is_dataclass(hint) or is_typeddict(hint)) and hint not in seen:
        seen.add(hint)
        yield hint
        for inner in get_type_hints(hint).values():
            yield from types_in(inner, seen)
    for inner in get_args(hint):
        yield from types_in(inner, seen)
