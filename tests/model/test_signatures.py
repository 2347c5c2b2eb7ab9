from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, Optional, TypeVar

import pytest

from tenure.model.errors import ConfigError
from tenure.model.signatures import Signature

if TYPE_CHECKING:
    from decimal import Decimal

    from somewhere import Context

T = TypeVar("T")


class Ctx:
    pass


class WorkflowCtx(Ctx):
    pass


class TypedCtx(Ctx, Generic[T]):
    pass


@dataclass
class Message:
    text: str


def read(fn):
    return Signature.of(fn, context_type=Ctx)


def names(signature):
    return [p.name for p in signature.parameters]


async def test_parameters_defaults_and_the_result_are_read():
    async def send(user: int, text: str = "hi", *, loud: bool = False) -> Message: ...

    signature = read(send)
    assert [(p.name, p.annotation, p.required) for p in signature.parameters] == [
        ("user", int, True),
        ("text", str, False),
        ("loud", bool, False),
    ]
    assert [p.keyword_only for p in signature.parameters] == [False, False, True]
    assert signature.parameters[1].default == "hi"
    assert signature.returns is Message
    assert signature.is_async
    assert signature.context is None
    await send(1)


def test_a_sync_function_is_known_as_such():
    def send(user: int) -> None: ...

    assert not read(send).is_async
    assert read(send).returns is type(None)


def test_what_is_not_annotated_is_any():
    def send(user, text="hi"): ...

    signature = read(send)
    assert [p.annotation for p in signature.parameters] == [Any, Any]
    assert signature.returns is Any


def test_the_context_is_found_first():
    def job(ctx: Ctx, n: int): ...

    assert (read(job).context, names(read(job))) == ("ctx", ["n"])


def test_the_context_is_found_last():
    def job(n: int, *, ctx: Ctx): ...

    assert (read(job).context, names(read(job))) == ("ctx", ["n"])


def test_the_context_is_found_behind_optional_annotated_subclasses_and_generics():
    def optional(n: int, ctx: Optional[Ctx] = None): ...  # noqa: UP045 - the old spelling is what is tested
    def either(ctx: Ctx | None, n: int): ...
    def noted(ctx: Annotated[Ctx, "note"], n: int): ...
    def derived(ctx: WorkflowCtx, n: int): ...
    def generic(ctx: TypedCtx[int], n: int): ...

    for job in (optional, either, noted, derived, generic):
        assert read(job).context == "ctx"
        assert names(read(job)) == ["n"]


def test_a_list_of_contexts_is_an_argument():
    def job(several: list[Ctx]): ...

    assert read(job).context is None


def test_the_context_is_found_though_imported_for_the_type_checker_only():
    def job(ctx: Context, n: int): ...

    class Context:
        pass

    assert Signature.of(job, context_type=Context).context == "ctx"


def test_callers_see_the_signature_without_the_context():
    def job(ctx: Ctx, n: int, text: str = "x"): ...

    assert list(read(job).bindable.parameters) == ["n", "text"]


def test_a_ctx_without_an_annotation_is_refused_because_it_would_be_input():
    def job(ctx, n: int): ...

    with pytest.raises(ConfigError, match="'ctx' has no annotation, so it would be part of the job's input: write `ctx: Ctx`"):
        read(job)


def test_a_ctx_that_is_annotated_as_something_else_is_input():
    def job(ctx: dict, n: int): ...

    assert (read(job).context, names(read(job))) == (None, ["ctx", "n"])


def test_two_contexts_are_one_too_many():
    def job(ctx: Ctx, other: Ctx): ...

    with pytest.raises(ConfigError, match="ctx and other both take the context"):
        read(job)


def test_types_of_the_enclosing_function_are_found():
    @dataclass
    class Local:
        n: int

    async def job(message: Local, more: list[Local] | None = None) -> Local: ...

    signature = read(job)
    assert [p.annotation for p in signature.parameters] == [Local, list[Local] | None]
    assert signature.returns is Local


def test_an_unknown_type_is_reported_with_the_parameter_and_the_way_out():
    def job(n: int, price: Decimal): ...

    with pytest.raises(ConfigError, match=r"parameter 'price' .*'Decimal' is not defined.*TYPE_CHECKING"):
        read(job)


def test_an_unknown_return_type_is_reported_as_such():
    def job(n: int) -> Decimal: ...

    with pytest.raises(ConfigError, match="the return annotation"):
        read(job)


def test_an_annotation_that_is_not_python_is_reported_with_the_parameter():
    def job(n): ...

    job.__annotations__["n"] = "int ["
    with pytest.raises(ConfigError, match="parameter 'n'"):
        read(job)


def test_a_decorated_function_is_read_through_its_wrapper():
    def job(ctx: Ctx, message: Message) -> int: ...

    @functools.wraps(job)
    async def wrapper(*args, **kwargs):
        return job(*args, **kwargs)

    signature = read(wrapper)
    assert (names(signature), signature.context, signature.is_async) == (["message"], "ctx", True)
    assert signature.parameters[0].annotation is Message


class Callable_:
    def __call__(self, n: int): ...

    def method(self, n: int): ...


def plain(n: int): ...


def generator(n: int):
    yield n


async def async_generator(n: int):
    yield n


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (functools.partial(plain, 1), "is a partial"),
        (Callable_(), "is not a function"),
        (Callable_, "is not a function"),
        (Callable_().method, "is bound to an object"),
        (Callable_.method, "'self' is an object"),
        (print, "is not a function"),
        (5, "is not a function"),
        (generator, "is a generator"),
        (async_generator, "is a generator"),
    ],
)
def test_a_callable_that_is_not_a_plain_function_is_refused(thing, reason):
    with pytest.raises(ConfigError, match=reason):
        read(thing)


def test_open_ended_and_positional_only_parameters_are_refused_by_name():
    def many(*args: int): ...
    def named(**kwargs: int): ...
    def positional(n: int, /): ...

    for job, reason in (
        (many, r"'\*args' takes any"),
        (named, r"'\*\*kwargs' takes any"),
        (positional, "remove the `/`"),
    ):
        with pytest.raises(ConfigError, match=reason):
            read(job)


def test_a_signature_keeps_its_constraints():
    def job(n: Annotated[int, "at least one"]): ...

    assert read(job).parameters[0].annotation == Annotated[int, "at least one"]
    assert isinstance(read(job).bindable, inspect.Signature)
