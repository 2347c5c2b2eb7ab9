"""Writes rest.md from the table of routes: `python docs/reference/write_rest.py`. A test compares the two."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tenure.web.openapi import BODY_ERRORS, COMMON, EVERYWHERE, document
from tenure.web.route_table import ROUTES

PAGE = Path(__file__).with_name("rest.md")

HEAD = """# REST API

Written by `docs/reference/write_rest.py` from the table of routes. A running server describes itself at `/_api/openapi.json`
(OpenAPI 3.1). How to start, mount and secure it: [web](../how-to/web.md).

Paths are below `/_api`. A request has a token in its header, `Authorization: Bearer tnr_...`; `tenure tokens create` makes
one. Scopes include each other: `admin` > `operate` > `read`. *limited*: a token that is limited to some queues or kinds may use
it, for jobs of these. *tracker*: the signed token of one job may use it, for that job. Bodies are JSON. Times are ISO 8601 with
an offset, durations are seconds or text such as `"5m"`.

Errors are problem documents (RFC 9457, `application/problem+json`) with `type`, `title`, `status`, `detail`, and for invalid
values `errors`: a `path` and a `message` for each. Common statuses:
"""


def page() -> str:
    return "\n".join([*_head(), *_overview(), *_routes(), *_types(), *_live()]).rstrip() + "\n"


def _head() -> Iterator[str]:
    yield HEAD
    yield "| status | meaning |"
    yield "|---|---|"
    for status, text in sorted({**COMMON, **EVERYWHERE, **BODY_ERRORS}.items()):
        yield f"| {status} | {text} |"
    yield ""


def _overview() -> Iterator[str]:
    yield "## Routes"
    yield ""
    yield "| route | | scope |"
    yield "|---|---|---|"
    for route in ROUTES:
        marks = [route.scope.value if route.scope else "none"] + ["limited"] * route.limited + ["tracker"] * route.tracker
        yield f"| [`{route.method} {route.openapi_path}`](#{route.name}) | {route.summary} | {', '.join(marks)} |"
    yield ""


def _routes() -> Iterator[str]:
    paths = document()["paths"]
    for route in ROUTES:
        told = paths[f"/_api{route.openapi_path}"][route.method.lower()]
        yield f"## {route.name}"
        yield ""
        yield f"`{route.method} /_api{route.openapi_path}`"
        yield ""
        yield f"{route.summary} {' '.join(route.description.split())}".rstrip()
        yield ""
        given = [one for one in told["parameters"] if one["in"] != "path"]
        if given:
            yield "| parameter | type | |"
            yield "|---|---|---|"
            for one in given:
                where = "" if one["in"] == "query" else " (header)"
                yield f"| `{one['name']}`{where} | {_type(one['schema'])} | {_note(one.get('description'), one['schema'])} |"
            yield ""
        if route.body is not None:
            yield from _fields(document()["components"]["schemas"][route.body.__name__], "body")
        yield from _answers(told["responses"], route.success)


def _answers(responses: dict[str, Any], success: int) -> Iterator[str]:
    content = responses[str(success)].get("content", {})
    shown = [_type(one["schema"]) if media == "application/json" else f"`{media}`" for media, one in content.items()]
    others = [f"{status} ({text})" for status, text in _own(responses, success)]
    yield f"Answers {success}{': ' if shown else ''}{', '.join(shown)}." + (f" Also {', '.join(others)}." if others else "")
    yield ""


def _own(responses: dict[str, Any], success: int) -> Iterator[tuple[str, str]]:
    common = {str(status) for status in (*COMMON, *EVERYWHERE, *BODY_ERRORS)}
    for status, told in responses.items():
        if status not in common and status != str(success):
            yield status, told["description"].rstrip(".")


def _fields(schema: dict[str, Any], what: str) -> Iterator[str]:
    yield f"| {what} | type | |"
    yield "|---|---|---|"
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        mark = ", required" if name in required and what == "body" else ""
        yield f"| `{name}` | {_type(one)}{mark} | {_note(one.get('description'), one)} |"
    yield ""


def _types() -> Iterator[str]:
    yield "## Types"
    yield ""
    bodies = {route.body.__name__ for route in ROUTES if route.body is not None}
    for name, schema in sorted(document()["components"]["schemas"].items()):
        if name in bodies or "enum" in schema:
            continue
        yield f"### {name}"
        yield ""
        if "description" in schema:
            yield " ".join(schema["description"].split())
            yield ""
        yield from _fields(schema, "field")


def _type(schema: dict[str, Any]) -> str:  # noqa: PLR0911 - a line for each form
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        inner = document()["components"]["schemas"][name]
        return _type(inner) if "enum" in inner else f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    if schema.get("format"):
        return str(schema["format"])
    return str(schema.get("type", "any"))


def _note(description: str | None, schema: dict[str, Any]) -> str:
    default = schema.get("default")
    notes = [" ".join(description.split())] if description else []
    if default not in (None, {}, [], ""):
        notes.append(f"Default `{str(default).lower() if isinstance(default, bool) else default}`.")
    bounds = [f"{schema[bound]}" for bound in ("minimum", "maximum") if bound in schema]
    if len(bounds) == 2:
        notes.append(f"{bounds[0]} to {bounds[1]}.")
    return " ".join(notes).replace("|", "\\|")


def _live() -> Iterator[str]:
    from tenure.web.live import websocket  # noqa: PLC0415 - its docstring is the text

    head, _, messages = (websocket.__doc__ or "").partition("\n\n    ")
    text = re.sub(r"\s+", " ", head.partition("\n\n")[2])
    yield "## Live updates"
    yield ""
    yield f"`WebSocket /_api/live`. {text}"
    yield ""
    yield "```"
    for line in f"    {messages}".rstrip().splitlines():
        yield line.removeprefix("    ")
    yield "```"
    yield ""
    yield (
        "A topic's current state comes first, then each later state that differs; states in quick succession may be sent as one. "
        "With `versions`, a state that was seen before a reconnect is not sent again."
    )


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
