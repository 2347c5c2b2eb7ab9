"""Limits on concurrency and rate, changed at run time."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client.limits import LimitStatus
from tenure.client.unchanged import UNCHANGED
from tenure.model.limits import Limit, LimitRules, Rate
from tenure.model.options import check_option
from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.problems import Problem


class Bound(RequestModel):
    most: int
    per: str | None = Field(None, description="A path in the input: the bound holds for each value.")


class RateBound(Bound):
    every: float | str = Field(description='Seconds, or "1m".')


class LimitBody(RequestModel):
    """What is left out stays unchanged; null removes it."""

    concurrency: int | Bound | list[Bound] | None = None
    rate: RateBound | list[RateBound] | None = None
    fair_by: str | None = None


class LimitList(TypedDict):
    limits: list[LimitStatus]


class LimitReply(TypedDict):
    name: str
    rules: LimitRules
    """The rules in effect."""


async def list_limits(call: ApiCall) -> LimitList:
    """List every limit that the code declares or that was set at run time."""
    return {"limits": (await call.services.stats.rare.get()).limits}


async def set_limit(call: ApiCall, body: LimitBody) -> LimitReply:
    """Change a limit (`kind:send_email`, `queue:mail`) for all workers, at once, until it is reset.

    What is left out stays unchanged; null removes it.
    """
    name = call.path["name"]
    call.note(before=await _rules(call, name))
    rules = await call.services.client.set_limit(
        name,
        concurrency=check_option("concurrency", _limits, body.concurrency)
        if "concurrency" in body.model_fields_set
        else UNCHANGED,
        rate=check_option("rate", _rates, body.rate) if "rate" in body.model_fields_set else UNCHANGED,
        fair_by=body.fair_by if "fair_by" in body.model_fields_set else UNCHANGED,
        by=call.principal.name,
    )
    call.services.stats.rare.forget()
    call.note(after=rules)
    return {"name": name, "rules": rules}


async def reset_limit(call: ApiCall) -> LimitReply:
    """Remove what was set at run time: the rules that the code declares apply again."""
    name = call.path["name"]
    call.note(before=await _rules(call, name))
    rules = await call.services.client.reset_limit(name)
    if rules is None:
        raise Problem(404, "limit-not-found", f"nothing was set at run time for limit {name!r}: GET /_api/limits lists them")
    call.services.stats.rare.forget()
    call.note(after=rules)
    return {"name": name, "rules": rules}


async def _rules(call: ApiCall, name: str) -> LimitRules | None:
    return next((limit.rules for limit in await call.services.client.limits() if limit.name == name), None)


def _limits(given: int | Bound | list[Bound] | None) -> int | list[Limit] | None:
    if given is None or isinstance(given, int):
        return given
    return [Limit(one.most, one.per) for one in (given if isinstance(given, list) else [given])]


def _rates(given: RateBound | list[RateBound] | None) -> list[Rate] | None:
    if given is None:
        return None
    return [Rate(one.most, one.every, one.per) for one in (given if isinstance(given, list) else [given])]
