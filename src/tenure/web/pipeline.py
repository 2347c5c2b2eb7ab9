"""What every request passes through: origin, authentication, rate, scope, validation, audit log, handler, answer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from tenure.client.json_values import to_json_value
from tenure.model.errors import ConfigError, InvalidInput, StoreUnavailable
from tenure.model.ids import uuid7
from tenure.store.audit import AuditSource
from tenure.web.api_routes import ApiCall, ApiRoute, Reply
from tenure.web.heavy_requests import LARGE, Turn, current
from tenure.web.problems import Problem, internal_error, invalid_input, of_error
from tenure.web.request_parsing import parse_body, parse_query, read_body, refuse_nul
from tenure.web.security.audit_log import AuditTrail
from tenure.web.security.authentication import check_csrf, counted_as, ip_of
from tenure.web.security.headers import add_headers
from tenure.web.security.origins import check_origin, cors_headers
from tenure.web.security.principal import LOCAL, Principal
from tenure.web.services import WebServices

log = logging.getLogger("tenure")

WITHIN = 30.0  # seconds for a handler
SOURCE_HEADER = "tenure-source"  # the dashboard sends it with every change


class Endpoint:
    """Carries out the requests of one route."""

    def __init__(self, route: ApiRoute, services: Callable[[], WebServices]) -> None:
        self._route = route
        self._services = services
        self._parameters = route.parameters

    async def respond(self, request: Request) -> Response:
        try:
            services = self._services()
        except ConfigError as error:
            log.error("web server is not configured", extra={"error": str(error)})  # noqa: TRY400 - the message is enough
            return add_headers(
                Problem(
                    503, "not-configured", "the server has no valid settings: correct them, its log has the reason"
                ).response()
            )
        try:
            response = await self._answer(request, services)
        except Exception as error:  # noqa: BLE001 - answered as a problem document
            response = failure(error, self._route)
        if services.options.allowed_origins:
            response.headers.update(cors_headers(request.headers.get("origin"), services.options.allowed_origins))
        return add_headers(response)

    async def _answer(self, request: Request, services: WebServices) -> Response:
        route = self._route
        principal = await self._admitted(request, services)
        call = ApiCall(request=request, services=services, principal=principal, path=request.path_params)
        given: dict[str, Any] = {}
        refuse_nul(
            "path", ((name, value) for name, value in request.path_params.items() if name != "id")
        )  # no job has such an id
        parsed = parse_query(request.query_params, route.query)
        if route.query is not None:
            given["query"] = parsed
        if not route.changes:
            return await self._carried_out(call, given)
        turn = Turn(services.heavy_requests, counted_as(principal, request))
        current.set(turn)
        try:
            parsed = await self._body(request, turn)
            if route.body is not None:
                given["body"] = parsed
            return await self._carried_out(call, given)
        finally:
            turn.end()

    async def _body(self, request: Request, turn: Turn) -> BaseModel | None:
        raw = await read_body(request, self._route.largest_body, turn)
        if len(raw) > LARGE:
            await turn.take(len(raw))
        return parse_body(request, raw, self._route.body, required=self._route.body_required)

    async def _admitted(self, request: Request, services: WebServices) -> Principal:
        """The caller, if the request is allowed. A change that is refused here leaves a record in the log, not an entry in the
        audit log, which clients without a token could fill."""
        principal: Principal | None = None
        try:
            self._check_origin_and_address(request, services)
            principal = await self._principal(request, services)
            self._check_access(principal, request)
            await self._check_writable(services)
        except Problem as problem:
            if self._route.audited and problem.status in (401, 403):
                actor = None if principal is None else principal.name
                fields = {"action": self._route.name, "reason": problem.slug, "actor": actor, "address": ip_of(request)}
                log.warning("change refused", extra=fields)
            raise
        return principal

    def _check_origin_and_address(self, request: Request, services: WebServices) -> None:
        if self._route.changes:
            check_origin(request, services.options.allowed_origins)
        if not self._route.is_probe:
            services.authenticator.check_address(request)

    async def _check_writable(self, services: WebServices) -> None:
        if self._route.changes and self._route.audited and await services.is_read_only():
            raise Problem(403, "read-only", "this server only shows: use one that may write, or the command line")

    async def _principal(self, request: Request, services: WebServices) -> Principal:
        if self._route.scope is None:
            return LOCAL
        principal = await services.authenticator.require(request)
        services.authenticator.check_rate(principal, request)
        return principal

    def _check_access(self, principal: Principal, request: Request) -> None:
        route = self._route
        if route.scope is None:
            return
        if route.changes:
            check_csrf(request, principal)
        if principal.job_id is not None:
            if not route.tracker or _uuid(request.path_params.get("id")) != principal.job_id:
                raise Problem(403, "limited", "this token is for one job only: use it for that job, or use another one")
            if route.changes and not principal.may_cancel:
                raise Problem(403, "limited", "this token may only look at the job: create it with cancel")
            return
        principal.require(route.scope)
        if not route.limited:
            principal.require_whole()

    async def _carried_out(self, call: ApiCall, given: dict[str, Any]) -> Response:
        route = self._route
        if not route.audited:
            return await self._handled(call, given)
        body = given.get("body")
        trail = call.audit = AuditTrail(
            log=call.services.audit,
            redaction=call.services.redaction,
            request_id=str(uuid7()),
            actor=call.principal.name,
            ip=ip_of(call.request),
            source=_source(call),
            action=route.name,
            subject=next(iter(call.path.values()), None),
            only_after=route.audited == "after",
            request=None if body is None or route.audited == "after" else body.recorded(),
        )
        if route.audited == "around":
            await trail.requested()
        try:
            response = await self._handled(call, given)
        except Exception as error:
            status = (of_error(error) or internal_error()).status  # to keep the problem would keep this frame, and the body in it
            await trail.finished(status)
            raise
        await trail.finished(response.status_code)
        return response

    async def _handled(self, call: ApiCall, given: dict[str, Any]) -> Response:
        try:
            async with asyncio.timeout(WITHIN):
                answer = await self._route.handler(call, **given)
        except TimeoutError:
            raise StoreUnavailable(f"no answer within {WITHIN:g} s") from None
        except InvalidInput as error:
            arguments = self._route.arguments
            raise invalid_input(error, arguments, getattr(given.get("body"), arguments, None)) from None
        if isinstance(answer, Response):
            return answer
        return as_response(answer, self._route.success)


def as_response(answer: Any, status: int) -> Response:
    reply = answer if isinstance(answer, Reply) else Reply(answer, status)
    if reply.status == 204:
        return Response(status_code=204, headers=dict(reply.headers))
    content = reply.content
    if reply.media_type == "application/json":
        text = json.dumps(content, default=to_json_value, separators=(",", ":"), ensure_ascii=False)
        content = text.encode("utf-8", "replace")
    return Response(content, reply.status, dict(reply.headers), reply.media_type)


def failure(error: Exception, route: ApiRoute) -> Response:
    """Callers get a problem document. What PostgreSQL said, and bugs, are in the log only."""
    problem = of_error(error, route.path_of, route.arguments)
    if problem is None:
        log.error("web request failed", extra={"route": route.name}, exc_info=error)
        problem = internal_error()
    elif problem.status >= 500:
        log.warning("web request failed", extra={"route": route.name, "error_type": type(error).__name__, "error": str(error)})
    return problem.response()


def _source(call: ApiCall) -> AuditSource:
    """What the caller says of itself, for readers of the audit log. Nothing depends on it: the credentials name the actor."""
    if call.principal.via == "tracker":
        return "tracker"
    return "dashboard" if call.request.headers.get(SOURCE_HEADER) == "dashboard" else "api"


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text or "")
    except ValueError:
        return None
