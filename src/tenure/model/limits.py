"""Limits: how many jobs of a kind or queue run at a time, how many start in a time span, and which take turns.

A limit has one key at most. Its path leads through the job's input as it is stored, because jobs are also enqueued, and get
their group, where no code of the app runs: from psql, from triggers, from workers of another version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from tenure.model.annotations import field_names
from tenure.model.codec import InputCodec
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError
from tenure.model.options import check_option, checks_fields, did_you_mean
from tenure.model.signatures import Parameter, Signature

MOST = 1_000_000
SHORTEST_WINDOW = 0.01  # seconds

if TYPE_CHECKING:

    class LimitRules(TypedDict, total=False):
        """The rules of a limit, as they are stored."""

        concurrency: int
        concurrency_per_key: int
        rate: list[float]
        """Starts, and the seconds in which they may be."""
        rate_per_key: list[float]
        key: str
        """The path through the input."""
        otherwise: str
        """The key of a job whose input does not have that path."""
        fair: bool

    class ChangedRules(TypedDict, total=False):
        """Rules that are to be set at run time. None removes one that the code declares."""

        concurrency: int | None
        concurrency_per_key: int | None
        rate: list[float] | None
        rate_per_key: list[float] | None
        key: str | None
        otherwise: str | None
        fair: bool | None

else:
    # pydantic describes the rules in the REST API. Before Python 3.12 it refuses `typing.TypedDict`, and typing_extensions is not
    # imported before pydantic is needed.
    LimitRules = ChangedRules = dict[str, Any]


@checks_fields
@dataclass(frozen=True, slots=True)
class Limit:
    """The number of jobs that run at a time, over all workers; with `per`, for each key. 0 starts none."""

    most: int
    per: str | None = None

    def __post_init__(self) -> None:
        _check_count(self.most, "Limit", least=0)
        _check_path(self.per, "Limit(per=...)")


@checks_fields
@dataclass(frozen=True, slots=True)
class Rate:
    """The number of starts in any time span of `every`, over all workers; with `per`, for each key."""

    most: int
    every: Duration
    per: str | None = None

    def __post_init__(self) -> None:
        _check_count(self.most, "Rate", least=1)
        _check_path(self.per, "Rate(per=...)")
        if self.seconds < SHORTEST_WINDOW:
            raise ConfigError(f"Rate every {self.every!r} is too short: give 10ms or more")

    @property
    def seconds(self) -> float:
        return to_seconds(self.every, what="Rate's every")


LimitGiven = Limit | int | Sequence[Limit]
RateGiven = Rate | Sequence[Rate]


def kind_limit(kind: str) -> str:
    return f"kind:{kind}"


def queue_limit(queue: str) -> str:
    return f"queue:{queue}"


def to_rules(
    concurrency: LimitGiven | None = None, rate: RateGiven | None = None, fair_by: str | None = None, *, what: str
) -> LimitRules:
    """Empty if nothing is limited. Errors name `what`."""
    limits = check_option("concurrency", partial(_limits, what=what), concurrency)
    rates = check_option("rate", partial(_rates, what=what), rate)
    check_option("fair_by", partial(_check_path, what="fair_by"), fair_by)
    rules: LimitRules = {}
    for limit in limits:
        rules["concurrency" if limit.per is None else "concurrency_per_key"] = limit.most
    for one in rates:
        rules["rate" if one.per is None else "rate_per_key"] = [one.most, one.seconds]
    if fair_by is not None:
        rules["fair"] = True
    given = [*(limit.per for limit in limits), *(one.per for one in rates), fair_by]
    paths = {path for path in given if path is not None}
    if len(paths) > 1:
        named = ", ".join(map(repr, sorted(paths)))
        raise ConfigError(
            f"{what}: per= and fair_by= name several keys ({named}), but a limit has one: give all of them the same"
        )
    if paths:
        rules["key"] = paths.pop()
    return rules


def of_kind(rules: LimitRules, *, kind: str, signature: Signature, codec: InputCodec) -> LimitRules:
    """The same, with the path of the key in the stored input of this kind."""
    if "key" not in rules:
        return rules
    path = rules["key"]
    first, *rest = path.split(".")
    parameters = {parameter.name: parameter for parameter in signature.parameters}
    if codec.model_parameter is not None:
        # A single model is stored as its own object, without the parameter's name.
        inner = rest if first == codec.model_parameter.name else [first, *rest]
        if not inner:
            raise ConfigError(f"job {kind!r}: {path!r} is the whole input: name a part of it, such as {path + '.tenant_id'!r}")
        _check_field(inner[0], codec.model_parameter, path, kind)
        return rules | {"key": ".".join(inner)}
    if first not in parameters:
        raise ConfigError(
            f"job {kind!r}: the path {path!r} starts at {first!r}, but there is no parameter named {first!r}; "
            f"{did_you_mean(first, parameters)}"
        )
    if not parameters[first].required and (otherwise := _walk(parameters[first].default, rest)) is not None:
        return rules | {"otherwise": str(otherwise)}  # a call that leaves it out is in the same group as one that gives it
    return rules


def _check_field(name: str, parameter: Parameter, path: str, kind: str) -> None:
    fields = field_names(parameter.annotation)
    if fields is not None and name not in fields:
        raise ConfigError(
            f"job {kind!r}: the path {path!r} leads to {name!r}, but parameter {parameter.name!r} has no field named {name!r}; "
            f"{did_you_mean(name, sorted(fields))}"
        )


def _walk(value: Any, path: Iterable[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value


def _limits(given: LimitGiven | None, what: str) -> list[Limit]:
    limits = []
    for one in _listed(given):
        if isinstance(one, int) and not isinstance(one, bool):
            limits.append(Limit(one))
        elif isinstance(one, Limit):
            limits.append(one)
        else:
            raise ConfigError(f'{what}: concurrency is {one!r}: give Limit(5), Limit(1, per="tenant_id"), or a list of both')
    _check_once(limits, "concurrency", what)
    return limits


def _rates(given: RateGiven | None, what: str) -> list[Rate]:
    rates = []
    for one in _listed(given):
        if not isinstance(one, Rate):
            way_out = 'give Rate(100, "1m"), Rate(10, "1s", per="tenant_id"), or a list of both'
            raise ConfigError(f"{what}: rate is {one!r}: {way_out}")
        rates.append(one)
    _check_once(rates, "rate", what)
    return rates


def _listed(given: object) -> list[Any]:
    return [] if given is None else list(given) if isinstance(given, list | tuple) else [given]


def _check_once(given: Sequence[Limit] | Sequence[Rate], word: str, what: str) -> None:
    with_key = sum(one.per is not None for one in given)
    if with_key > 1 or len(given) - with_key > 1:
        raise ConfigError(f"{what}: {word}{' per key' * (with_key > 1)} is given twice: give one for all, and one per key")


def _check_count(value: object, what: str, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST:
        raise ConfigError(f"{what}({value!r}): give a whole number from {least} to {MOST}")


def _check_path(path: object, what: str) -> None:
    if path is None:
        return
    if callable(path):
        raise ConfigError(
            f"{what} takes a path through the input, such as 'message.tenant_id', not a function: "
            "the group of a job is also found where your code does not run"
        )
    if not isinstance(path, str) or not all(path.split(".")) or any(c in path for c in "\n\r\0=/"):
        raise ConfigError(f"{what} is {path!r}: give a path through the input, such as 'tenant_id' or 'message.tenant_id'")
