"""What a route is. Its handler's signature defines the rest: `query` and `body` are checked against their annotations, and the
return annotation describes the answer. Routing, validation and OpenAPI are all made from this."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import cleandoc, signature
from typing import Any, Literal, Union, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request

from tenure.web.problems import body_path
from tenure.web.request_parsing import LARGEST_BODY, LARGEST_BODY_WITHOUT_TOKEN
from tenure.web.security.audit_log import AuditTrail
from tenure.web.security.principal import Principal, Scope
from tenure.web.services import WebServices

Handler = Callable[..., Awaitable[Any]]
"""`async def handler(call: ApiCall, query: SomeModel, body: SomeModel) -> SomeType`; `query` and `body` are optional."""

Audited = Literal["", "around", "after"]
"""Whether a call is recorded before and after it is carried out. "after": the change itself names the actor."""


class RequestModel(BaseModel):
    """A query or a body. Unknown fields are refused: a misspelled option must not be ignored."""

    model_config = ConfigDict(extra="forbid")

    def recorded(self) -> dict[str, Any]:
        """As it is in the audit log, where secrets are hidden by their names."""
        return self.model_dump(mode="json", exclude_unset=True)


@dataclass(slots=True, kw_only=True)
class ApiCall:
    """One request, after it was authenticated and checked."""

    request: Request
    services: WebServices
    principal: Principal
    path: Mapping[str, str]
    audit: AuditTrail | None = None

    def note(self, *, before: Any = None, after: Any = None, subject: str | None = None, request: Any = None) -> None:
        """Adds to the entry of the audit log."""
        if self.audit is not None:
            self.audit.before = before if before is not None else self.audit.before
            self.audit.after = after if after is not None else self.audit.after
            self.audit.subject = subject if subject is not None else self.audit.subject
            self.audit.request = request if request is not None else self.audit.request


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is not plain JSON with the usual status."""

    content: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


@dataclass(frozen=True, kw_only=True)
class ApiRoute:
    method: str
    path: str
    """Below `/_api`. `{name:path}` may contain slashes."""
    handler: Handler
    scope: Scope | None
    """None: anyone."""
    limited: bool = False
    """Also for principals that are limited to some queues and kinds: the handler checks what they may see."""
    tracker: bool = False
    """Also with signed access to one job, if that is the job in the path."""
    audited: Audited = ""
    statuses: Mapping[int, str] = field(default_factory=dict)
    """Besides the common ones: what else it may answer."""
    media_types: tuple[str, ...] = ("application/json",)
    success: int = 200
    headers: tuple[str, ...] = ()
    """That it reads, besides those of every request."""

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.handler)

    @cached_property
    def query(self) -> type[BaseModel] | None:
        return self._hints.get("query")

    @cached_property
    def body(self) -> type[BaseModel] | None:
        return self._hints.get("body")

    @cached_property
    def body_required(self) -> bool:
        """Without a body, a model of which every field is optional has its defaults."""
        return self.body is not None and any(info.is_required() for info in self.body.model_fields.values())

    def path_of(self, option: str | None) -> str | None:
        """Where a request gives this option: `body.priority`. None, or an option that is given nowhere: what may have several."""
        if option in self.headers:
            return f"header.{option}"
        if self.body is not None and (path := _path_in(self.body, option)) is not None:
            return body_path(*path.split("."))
        if self.query is not None and option in self.query.model_fields:
            return f"query.{option}"
        if option in self.path_names:
            return f"path.{option}"
        return "body" if self.body is not None else "query" if self.query is not None else None

    @property
    def arguments(self) -> str:
        """The member of the body that has the arguments of a job."""
        return "args" if self.body is not None and "args" in self.body.model_fields else "input"

    @property
    def path_names(self) -> list[str]:
        return re.findall(r"\{(\w+)\}", self.openapi_path)

    @property
    def reply(self) -> Any:
        """The type of the answer."""
        hint = self._hints.get("return")
        parts = [part for part in get_args(hint) if part is not Reply] if Reply in get_args(hint) else []
        return Union[tuple(parts)] if parts else hint  # noqa: UP007 - of types that are known at run time only

    @property
    def name(self) -> str:
        return str(getattr(self.handler, "__name__", "handler"))

    @property
    def summary(self) -> str:
        return self._doc.partition("\n")[0]

    @property
    def description(self) -> str:
        return self._doc.partition("\n")[2].strip()

    @property
    def _doc(self) -> str:
        return cleandoc(self.handler.__doc__ or "")

    @property
    def parameters(self) -> list[str]:
        """Of the handler, besides the call."""
        return [name for name in signature(self.handler).parameters if name in ("query", "body")]

    @property
    def changes(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def largest_body(self) -> int:
        """In bytes."""
        return LARGEST_BODY_WITHOUT_TOKEN if self.scope is None else LARGEST_BODY

    @property
    def is_probe(self) -> bool:
        """It only says whether the server works."""
        return self.scope is None and not self.changes

    @property
    def openapi_path(self) -> str:
        return self.path.replace(":path}", "}")


def _path_in(model: type[BaseModel], option: str | None) -> str | None:
    """In the model, or in a model inside of it: `filter.kind`."""
    if option in model.model_fields:
        return option
    for name, info in model.model_fields.items():
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel) and (path := _path_in(inner, option)) is not None:
            return f"{name}.{path}"
    return None
