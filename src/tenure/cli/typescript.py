"""TypeScript of JSON Schemas: the types of each kind's input and output, and a tracker for each kind."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenure.model.published_kind import PublishedKind

Schema = Mapping[str, Any]

DEEPEST = 50
"""Levels of a schema that are read; deeper ones become `unknown`."""

HEAD = """\
// Written by `tenure typegen`. Do not edit: changes are overwritten.

import { createTenure, type JobOptions, type JobTracker, type Tenure, type TenureOptions } from %s;
"""

CLIENT = """\
let current: Tenure<Kinds> | undefined;

/** Sets where the server is, and the token. Call it before the first job is started; a page of the same site needs neither. */
export function configureTenure(options: TenureOptions): Tenure<Kinds> {
  current?.close();
  return (current = createTenure<Kinds>(options));
}

/** The client of the functions below. */
export function getTenure(): Tenure<Kinds> {
  return (current ??= createTenure<Kinds>());
}
"""

CREATE = """\
{doc}export function create{name}Job(options?: JobOptions & {{ signal?: AbortSignal }}): JobTracker<{input}, {output}> {{
  return getTenure().createJob({kind}, options);
}}
"""

_SIMPLE = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}
_IDENTIFIER = re.compile(r"^[A-Za-z_$][\w$]*$", re.ASCII)
_TAKEN = frozenset({"Kinds", "JobOptions", "JobTracker", "Tenure", "TenureOptions", "AbortSignal", "Record"})


def module_of(kinds: Sequence[PublishedKind], module: str = "tenure-tracker") -> str:
    """The text of a TypeScript module for these kinds. `module`: what it imports the tracker from."""
    return _Module(module).text(sorted(kinds, key=lambda kind: kind.name))


@dataclass
class _Module:
    module: str
    declarations: dict[str, str] = field(default_factory=dict)
    """By the name of each type."""

    def text(self, kinds: Sequence[PublishedKind]) -> str:
        names = _names(kinds)
        self.declarations.update(dict.fromkeys(_TAKEN, ""))
        self.declarations.update({f"{name}{part}": "" for name in names.values() for part in ("Input", "Output")})
        lines, creates = [], []
        for kind in kinds:
            name, quoted = names[kind.name], _quoted(kind.name)
            self.declare(f"{name}Input", kind.input, given=True)
            self.declare(f"{name}Output", kind.output, given=False)
            lines.append(f"  {quoted}: {{ input: {name}Input; output: {name}Output }};")
            creates.append(
                CREATE.format(
                    doc=_comment(kind.description, ""), name=name, input=f"{name}Input", output=f"{name}Output", kind=quoted
                )
            )
        types = [text for text in self.declarations.values() if text]
        listed = "\n".join(["/** The kinds of jobs, by name. */", "export type Kinds = {", *lines, "};\n"])
        return "\n".join([HEAD % _quoted(self.module), *types, listed, CLIENT, *creates])

    def declare(self, name: str, schema: Schema | None, *, given: bool) -> None:
        """`given`: what callers give, where a field with a default may be left out. Results contain all fields."""
        if schema is None:
            what = "Record<string, unknown>" if given else "unknown"
            self.declarations[name] = f"export type {name} = {what};\n"
            return
        writer = _Writer(self, schema, name, given=given)
        self.declarations[name] = writer.declaration(name, schema)


class _Writer:
    """Types of one schema and of its definitions."""

    def __init__(self, module: _Module, root: Schema, owner: str, *, given: bool) -> None:
        self._module = module
        self._root = root
        self._owner = owner
        self._given = given
        self._named: dict[str, str] = {}
        """The name of each definition, by its reference."""

    def declaration(self, name: str, schema: Schema) -> str:
        doc = _comment(schema.get("description"), "")
        if self._is_interface(schema):
            return f"{doc}export interface {name} {self._object(schema, '', 0)}\n"
        return f"{doc}export type {name} = {self.type_of(schema)};\n"

    def type_of(self, schema: Any, indent: str = "", depth: int = 0) -> str:
        if not isinstance(schema, Mapping) or depth > DEEPEST:
            return "never" if schema is False else "unknown"
        if isinstance(reference := schema.get("$ref"), str):
            return self._reference(reference)
        if isinstance(values := [schema["const"]] if "const" in schema else schema.get("enum"), list):
            return _union([_literal(value) for value in values])
        for word in ("anyOf", "oneOf"):
            if isinstance(options := schema.get(word), list) and options:
                return _union([self.type_of(option, indent, depth + 1) for option in options])
        if isinstance(parts := schema.get("allOf"), list) and parts:
            types = [self.type_of(part, indent, depth + 1) for part in parts]
            if "properties" in schema:
                types.append(self._object(schema, indent, depth))
            return " & ".join(dict.fromkeys(f"({one})" if "|" in one else one for one in types))
        return self._by_type(schema, indent, depth)

    def _by_type(self, schema: Schema, indent: str, depth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            return _union([self._by_type({**schema, "type": one}, indent, depth + 1) for one in kind])
        if kind == "array":
            return self._array(schema, indent, depth)
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, indent, depth)
        return _SIMPLE.get(kind, "unknown") if isinstance(kind, str) else "unknown"

    def _array(self, schema: Schema, indent: str, depth: int) -> str:
        items = schema.get("items")
        if isinstance(first := schema.get("prefixItems"), list):
            types = [self.type_of(one, indent, depth + 1) for one in first]
            rest = items not in (None, False) and schema.get("maxItems") != len(first)
            return f"[{', '.join([*types, *([f'...{_listed(self.type_of(items, indent, depth + 1))}'] if rest else [])])}]"
        return _listed("unknown" if items is None else self.type_of(items, indent, depth + 1))

    def _object(self, schema: Schema, indent: str, depth: int) -> str:
        properties, more = schema.get("properties"), schema.get("additionalProperties")
        patterns = schema.get("patternProperties")
        if not isinstance(properties, Mapping) or not properties:
            values = [more] if isinstance(more, Mapping) else _sorted(patterns).values() if isinstance(patterns, Mapping) else []
            if values:
                return f"Record<string, {_union([self.type_of(value, indent, depth + 1) for value in values])}>"
            return "Record<string, never>" if more is False else "Record<string, unknown>"
        inner = f"{indent}  "
        lines = []
        required = schema.get("required")
        for name, value in _sorted(properties).items():
            needed = name in (required if isinstance(required, list) else ())
            always = needed or (not self._given and isinstance(value, Mapping) and "default" in value)
            doc = _comment(value.get("description") if isinstance(value, Mapping) else None, inner)
            lines.append(f"{doc}{inner}{_property(name)}{'' if always else '?'}: {self.type_of(value, inner, depth + 1)};\n")
        if isinstance(more, Mapping) or more is True:
            lines.append(f"{inner}[name: string]: unknown;\n")
        return f"{{\n{''.join(lines)}{indent}}}"

    def _reference(self, reference: str) -> str:
        if reference == "#":
            return self._owner
        if reference not in self._named:
            found = self._find(reference)
            if found is None:
                return "unknown"
            self._name(reference, found)
        return self._named[reference]

    def _name(self, reference: str, found: Schema) -> None:
        """A definition that several kinds share is written once, if it is the same for all."""
        base = _pascal(reference.rpartition("/")[2])
        part = "Input" if self._given else "Output"
        for name in _candidates(base, f"{base}{part}", f"{self._owner}{base}"):
            self._named[reference] = name  # before its fields are read: it may contain itself
            known = self._module.declarations.get(name)
            if known is None:
                self._module.declarations[name] = " "  # taken
                self._module.declarations[name] = self.declaration(name, found)
                return
            if known.strip() and known == self.declaration(name, found):
                return

    def _find(self, reference: str) -> Schema | None:
        found: Any = self._root
        if not reference.startswith("#/"):
            return None
        for step in reference[2:].split("/"):
            word = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or word not in found:
                return None
            found = found[word]
        return found if isinstance(found, Mapping) else None

    def _is_interface(self, schema: Schema) -> bool:
        plain = not any(word in schema for word in ("$ref", "const", "enum", "anyOf", "oneOf", "allOf"))
        return plain and schema.get("type", "object") == "object" and bool(schema.get("properties"))


def _sorted(members: Mapping[str, Any]) -> dict[str, Any]:
    """By name: the database keeps the members of a schema in an order of its own, and the code must give the same text."""
    return dict(sorted(members.items()))


def _candidates(*names: str) -> Any:
    yield from names
    number = 2
    while True:
        yield f"{names[-1]}{number}"
        number += 1


def _names(kinds: Sequence[PublishedKind]) -> dict[str, str]:
    """`billing.send_email` is BillingSendEmail. Kinds whose names differ only in other characters are numbered."""
    names: dict[str, str] = {}
    for kind in kinds:
        for name in _candidates(_pascal(kind.name)):
            if name not in names.values():
                names[kind.name] = name
                break
    return names


def _pascal(text: str) -> str:
    words = re.findall(r"[^\W_]+", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text))
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name and name.isidentifier() else f"Kind{name}"


def _property(name: str) -> str:
    return name if _IDENTIFIER.match(name) else _quoted(name)


def _quoted(text: str) -> str:
    # These two end a line in old versions of JavaScript; JSON does not escape them.
    return json.dumps(text, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else "unknown"


def _union(types: Sequence[str]) -> str:
    kept = list(dict.fromkeys(types))
    return "unknown" if "unknown" in kept or not kept else " | ".join(kept)


def _listed(item: str) -> str:
    return f"({item})[]" if " | " in item or " & " in item else f"{item}[]"


def _comment(text: Any, indent: str) -> str:
    if not isinstance(text, str) or not text.strip():
        return ""
    lines = [line.rstrip() for line in text.strip().replace("*/", "*\\/").splitlines()]
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"
