"""The description of the API, made from the table of routes: OpenAPI 3.1."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from tenure.version import __version__
from tenure.web.api_routes import ApiRoute
from tenure.web.attribute_docs import docs_of, types_in
from tenure.web.problems import MEDIA_TYPE, ProblemDocument
from tenure.web.route_table import ROUTES

PROBLEM = ""
REFERENCE = "#/components/schemas/{model}"
COMMON = {
    401: "No token, or one that is not valid.",
    403: "The token may not do this.",
    404: "It does not exist.",
    422: "A value is not valid; `errors` has a path for each.",
    429: "Too many requests; wait for `Retry-After` seconds.",
    503: "PostgreSQL cannot be reached, or took too long.",
}
NOT_PARAMETERS = frozenset({"Accept", "Content-Type"})
"""Headers that OpenAPI describes by the media types of bodies and answers."""

EVERYWHERE = {
    405: "The path exists, but not with this method; `Allow` lists its methods.",
    421: "The server does not serve the name in the header `Host`.",
    431: "The address and the headers have more than 16 KiB together.",
}
"""Also on routes that need no token."""
BODY_ERRORS = {
    400: "The request cannot be read.",
    408: "The body did not arrive in time.",
    413: "The body is larger than 1 MiB, or 4 KiB on a route that needs no token.",
    415: "The body is not JSON.",
}
FOREIGN = {403: "A page of another site may not do this."}


@cache
def document() -> dict[str, Any]:
    schemas, references = _schemas()
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(f"/_api{route.openapi_path}", {})[route.method.lower()] = _operation(route, references)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tenure",
            "version": __version__,
            "description": "Durable background jobs and workflows on PostgreSQL. Live updates: the WebSocket /_api/live, and "
            "/_api/jobs/{id}/events.",
        },
        "servers": [{"url": "../"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`tenure tokens create` makes one."},
                "session": {"type": "apiKey", "in": "cookie", "name": "tenure_session"},
            },
        },
    }


def _schemas() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The schemas of all types by name, and a reference to the answer of each route."""
    bodies = [route.body for route in ROUTES if route.body is not None]
    _, bodies_schema = models_json_schema([(body, "validation") for body in dict.fromkeys(bodies)], ref_template=REFERENCE)
    replies = {route.name: TypeAdapter(route.reply) for route in ROUTES if _is_described(route)}
    references, replies_schema = TypeAdapter.json_schemas(
        [(key, "serialization", adapter) for key, adapter in {**replies, PROBLEM: TypeAdapter(ProblemDocument)}.items()],
        ref_template=REFERENCE,
    )
    schemas = {**bodies_schema.get("$defs", {}), **replies_schema.get("$defs", {})}
    for type_ in {type_ for route in ROUTES for type_ in types_in(route.reply)}:
        for name, text in docs_of(type_).items():
            schemas[type_.__name__]["properties"][name].setdefault("description", text)
    return schemas, {str(key): reference for (key, _), reference in references.items()}


def _is_described(route: ApiRoute) -> bool:
    return route.reply not in (None, type(None), str)


def _operation(route: ApiRoute, references: dict[str, dict[str, Any]]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.path.split("/")[1]],
        "parameters": _path_parameters(route) + _query_parameters(route) + _header_parameters(route),
        "responses": _responses(route, references),
    }
    if route.description:
        operation["description"] = route.description
    if route.body is not None:
        schema = {"$ref": REFERENCE.format(model=route.body.__name__)}
        operation["requestBody"] = {"required": route.body_required, "content": {"application/json": {"schema": schema}}}
    if route.scope is not None:
        operation["security"] = [{"token": []}, {"session": []}]
        operation["x-scope"] = route.scope.value
    else:
        operation["security"] = []
    return operation


def _path_parameters(route: ApiRoute) -> list[dict[str, Any]]:
    schema = {"id": {"type": "string", "format": "uuid"}}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema.get(name, {"type": "string", "minLength": 1})}
        for name in route.path_names
    ]


def _query_parameters(route: ApiRoute) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    schema = route.query.model_json_schema()
    inner = schema.get("$defs", {})
    found = []
    for name, given in schema["properties"].items():
        parameter = {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": _inlined(given, inner),
        }
        if "description" in given:
            parameter["description"] = given["description"]
        found.append(parameter)
    return found


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    # A query has no null: leaving it out is the same.
    kept = {name: _inlined(value, definitions) for name, value in schema.items() if name not in ("title", "description")}
    if "anyOf" in kept:
        kept["anyOf"] = [one for one in kept["anyOf"] if one != {"type": "null"}]
        if len(kept["anyOf"]) == 1:
            kept |= kept.pop("anyOf")[0]
        if kept.get("default", 0) is None:
            del kept["default"]
    return kept


def _header_parameters(route: ApiRoute) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}
        for name in route.headers
        if name not in NOT_PARAMETERS
    ]


def _responses(route: ApiRoute, references: dict[str, dict[str, Any]]) -> dict[str, Any]:
    success: dict[str, Any] = {"description": route.summary}
    if _is_described(route):
        success["content"] = {"application/json": {"schema": references[route.name]}}
    for media in route.media_types:
        if media != "application/json":
            success.setdefault("content", {})[media] = {"schema": {"type": "string"}}
    answers = {str(route.success): success}
    problem = {"content": {MEDIA_TYPE: {"schema": references[PROBLEM]}}}
    common = {422: COMMON[422], 503: COMMON[503]} if route.scope is None else COMMON
    changing = (FOREIGN if route.scope is None else {}) | _body_errors(route) if route.changes else {}
    for status, text in {**common, **EVERYWHERE, **changing, **route.statuses}.items():
        if status < 300:
            answers[str(status)] = {**success, "description": text} if status != 204 else {"description": text}
        else:
            answers[str(status)] = {"description": text, **problem}
    return answers


def _body_errors(route: ApiRoute) -> dict[int, str]:
    return {**BODY_ERRORS, 413: f"The body is larger than {route.largest_body // 1024} KiB."}
