"""Reads queries and bodies, within bounds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any, Literal, get_origin

from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request

from tenure.model.errors import InvalidPayload
from tenure.model.payloads import check_json_text, clean_text
from tenure.web.heavy_requests import LARGE, Turn
from tenure.web.problems import LONGEST_NAME, FieldProblem, Problem, body_path, invalid, invalid_value

LARGEST_BODY = 1024 * 1024  # bytes
LARGEST_BODY_WITHOUT_TOKEN = 4 * 1024  # of routes that need no token: any client can keep the server waiting for the rest of it
MOST_PARAMETERS = 100  # of a query
LONGEST_NUMBER = 18  # digits of a length: Python refuses to read very long ones
BODY_WITHIN = 10.0  # seconds for a client to send it


def parse_query(params: QueryParams, model: type[BaseModel] | None) -> BaseModel | None:
    """A parameter of a list type may be repeated; any other one only once."""
    values_of = _grouped(params)
    if model is None:
        if params:
            name = next(iter(params))
            raise _invalid_parameter(name, f"{name[:LONGEST_NAME]!r} is not a parameter of this route: leave it out")
        return None
    given: dict[str, Any] = {}
    for name, values in values_of.items():
        if is_list(model, name):
            given[name] = [part for value in values for part in value.split(",")]
        elif len(values) > 1:
            raise _invalid_parameter(name, f"{name[:LONGEST_NAME]!r} is given {len(values)} times: give it once")
        else:
            given[name] = values[0]
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise _refused(error, "query", given) from None


def _grouped(params: QueryParams) -> dict[str, list[str]]:
    """The values of each name, in one pass: `getlist()` reads the whole query for each name."""
    items = params.multi_items()
    if len(items) > MOST_PARAMETERS:
        message = f"the query has {len(items)} parameters, but may have {MOST_PARAMETERS}: give fewer"
        raise Problem(422, "invalid-request", message, [{"path": "query", "message": message}])
    refuse_nul("query", items)
    grouped: dict[str, list[str]] = {}
    for name, value in items:
        grouped.setdefault(name, []).append(value)
    return grouped


def refuse_nul(where: str, given: Iterable[tuple[str, str]]) -> None:
    """No text of PostgreSQL contains it, so nothing can be found by it."""
    for name, value in given:
        if "\0" in value:
            raise invalid_value(
                f"{where}.{name[:LONGEST_NAME]}", "holds a NUL character, which PostgreSQL cannot store: remove it"
            )


def is_list(model: type[BaseModel], name: str) -> bool:
    info = model.model_fields.get(name)
    if info is None:
        return False
    annotations = [info.annotation, *getattr(info.annotation, "__args__", ())]
    return any(get_origin(annotation) is list for annotation in annotations)


def parse_body(request: Request, raw: bytes, model: type[BaseModel] | None, *, required: bool) -> BaseModel | None:
    if model is None:
        if raw.strip() not in (b"", b"{}"):
            message = "this route takes no body: leave it out"
            raise Problem(422, "invalid-request", message, [{"path": "body", "message": message}])
        return None
    if not raw and not required:
        return model()
    check_json(request)
    try:
        check_json_text(raw, what="the body", limit=LARGEST_BODY)
        return model.model_validate_json(raw, strict=True)  # as OpenAPI describes it: "3" is not a number, 1 is not a time
    except ValidationError as error:
        raise _refused(error, "body", _read(raw)) from None
    except InvalidPayload as error:
        found: FieldProblem = {"path": body_path(*_unstorable(raw)), "message": str(error)}
        raise Problem(422, "invalid-request", str(error), [found]) from None


def _unstorable(raw: bytes) -> list[str]:
    """The names and indexes of the first text in a body that PostgreSQL cannot store. Empty: it is not in one value."""
    left: list[tuple[list[str], Any]] = [([], _read(raw))]
    while left:
        path, value = left.pop()
        if isinstance(value, str) and clean_text(value, len(value)) != value:
            return path
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        left.extend(([*path, clean_text(str(name), LONGEST_NAME)], member) for name, member in reversed(list(members)))
    return []


def check_json(request: Request) -> None:
    """A form of another site cannot send this content type without asking first."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        message = f"{content_type[:LONGEST_NAME]!r} is not JSON: send JSON, with the header `Content-Type: application/json`"
        raise Problem(415, "content-type", message, [{"path": "header.Content-Type", "message": message}])


async def read_body(request: Request, largest: int, turn: Turn) -> bytes:
    """Refuses a body that is too large, or one too many of the large ones of its caller, before all of it has arrived."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or len(declared) > LONGEST_NUMBER or int(declared) > largest:
        raise _too_large(largest)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_WITHIN):
            async for part in request.stream():
                size += len(part)
                if size > largest:
                    raise _too_large(largest)
                parts.append(part)
                if size > LARGE:
                    turn.keep(int(declared) or largest)
    except TimeoutError:
        raise Problem(408, "timeout", f"the body did not arrive within {BODY_WITHIN:g} s: send it again") from None
    except ClientDisconnect:
        raise Problem(
            400, "disconnected", "the client closed the connection before the body had arrived: send it again"
        ) from None
    return b"".join(parts)


def _too_large(largest: int) -> Problem:
    return Problem(
        413, "too-large", f"the body is larger than {largest} bytes: store big data elsewhere and pass a reference to it"
    )


def _invalid_parameter(name: str, message: str) -> Problem:
    return Problem(422, "invalid-request", message, [{"path": f"query.{name[:LONGEST_NAME]}", "message": message}])


def _refused(error: ValidationError, where: Literal["body", "query"], given: Any) -> Problem:
    return invalid(error.errors(include_url=False, include_context=False, include_input=False), where, given)


def _read(raw: bytes) -> Any:
    """None: it is not JSON."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
