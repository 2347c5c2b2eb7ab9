"""Which types are stored as a JSON object, and how pydantic reads types of other libraries."""

from __future__ import annotations

import dataclasses
import sys
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from tenure.model.errors import ConfigError


def is_model(annotation: Any) -> bool:
    """Whether its JSON is always an object: pydantic models, dataclasses, TypedDicts, msgspec Structs, attrs classes."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    model = _class_of(annotation)
    if not isinstance(model, type):
        return False
    if hasattr(model, "__struct_config__"):
        return not model.__struct_config__.array_like
    return dataclasses.is_dataclass(model) or _is_typed_dict(model) or _is_pydantic_model(model) or is_foreign(annotation)


def field_names(annotation: Any) -> frozenset[str] | None:
    """The names that the fields of a model may have in JSON. None: others are allowed as well, or the names are not known."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    model: Any = _class_of(annotation)
    if not isinstance(model, type):
        return None
    if hasattr(model, "__struct_config__"):
        return frozenset({*getattr(model, "__struct_fields__", ()), *getattr(model, "__struct_encode_fields__", ())})
    if hasattr(model, "__attrs_attrs__"):
        return frozenset(attribute.name for attribute in model.__attrs_attrs__)
    if _is_typed_dict(model):
        return frozenset(model.__annotations__)
    if _is_pydantic_model(model):
        return _pydantic_names(model)
    config = getattr(model, "__pydantic_config__", None)  # of a pydantic dataclass: may allow aliases and extra fields
    return frozenset(f.name for f in dataclasses.fields(model)) if dataclasses.is_dataclass(model) and not config else None


def _pydantic_names(model: Any) -> frozenset[str] | None:
    if model.model_config.get("extra") == "allow" or model.model_config.get("alias_generator") is not None:
        return None
    names: set[str] = set()
    for name, field in model.model_fields.items():
        aliases = (field.alias, field.validation_alias, field.serialization_alias)
        if any(alias is not None and not isinstance(alias, str) for alias in aliases):
            return None
        names |= {name, *(alias for alias in aliases if isinstance(alias, str))}
    return frozenset(names)


def is_foreign(annotation: Any) -> bool:
    """A type that msgspec can read and pydantic cannot: a Struct or an attrs class."""
    model = _class_of(annotation)
    return isinstance(model, type) and (hasattr(model, "__struct_config__") or hasattr(model, "__attrs_attrs__"))


def msgspec_for(annotation: Any) -> Any:
    try:
        import msgspec  # noqa: PLC0415 - optional, imported only if its types are used
    except ImportError:
        raise ConfigError(f"{_name(annotation)} is read by msgspec, which is not installed: install it") from None
    return msgspec


def without(annotation: Any, types: tuple[type, ...]) -> Any:
    """The annotation without those members of its union: `Receipt | Snooze` is stored as a `Receipt`."""
    if get_origin(annotation) not in (Union, UnionType):
        return NoneType if _class_of(annotation) in types else annotation
    kept = [member for member in get_args(annotation) if _class_of(member) not in types]
    return Union[tuple(kept)] if kept else NoneType  # noqa: UP007 - the members are known at run time only


def adapt(annotation: Any, rebuilding: tuple[Any, ...] = ()) -> Any:
    """The same type in a form that pydantic understands, at any depth of generics."""
    if is_foreign(annotation):
        return _bridge(annotation)
    if _needs_rebuilding(annotation) and annotation not in rebuilding:
        return _rebuild(annotation, (*rebuilding, annotation))
    origin, args = get_origin(annotation), get_args(annotation)
    if not args or origin is Literal:
        return annotation
    if origin is Annotated:
        return Annotated[(adapt(args[0], rebuilding), *args[1:])]
    adapted = tuple(adapt(arg, rebuilding) for arg in args)
    if adapted == args:
        return annotation
    return Union[adapted] if origin in (Union, UnionType) else origin[adapted]  # noqa: UP007 - known at run time only


def _is_typed_dict(model: type) -> bool:
    return is_typeddict(model) or (issubclass(model, dict) and hasattr(model, "__required_keys__"))


def _is_pydantic_model(model: type) -> bool:
    pydantic = sys.modules.get("pydantic")  # not imported: then no type can be one of its models
    # The JSON of a root model may be anything, so it is a plain argument.
    return pydantic is not None and issubclass(model, pydantic.BaseModel) and not issubclass(model, pydantic.RootModel)


def _needs_rebuilding(annotation: Any) -> bool:
    """Before Python 3.12, pydantic refuses `typing.TypedDict`: it lacks what typing_extensions' own has."""
    return sys.version_info < (3, 12) and is_typeddict(annotation) and type(annotation).__module__ == "typing"


def _rebuild(original: Any, rebuilding: tuple[Any, ...]) -> Any:
    from typing_extensions import TypedDict  # noqa: PLC0415 - comes with pydantic, at its first use

    fields = {}
    for name, hint in get_type_hints(original, include_extras=True).items():
        stated = get_origin(hint)
        inner = adapt(get_args(hint)[0] if stated in (Required, NotRequired) else hint, rebuilding)
        required = stated is Required or (stated is not NotRequired and name in original.__required_keys__)
        fields[name] = inner if required else NotRequired[inner]
    make: Any = TypedDict
    rebuilt = make(original.__name__, fields)
    if config := getattr(original, "__pydantic_config__", None):
        rebuilt.__pydantic_config__ = config
    return rebuilt


def _bridge(foreign: Any) -> Any:
    from pydantic import PlainSerializer, PlainValidator, WithJsonSchema  # noqa: PLC0415 - slow to import

    msgspec, model = msgspec_for(foreign), _class_of(foreign)

    def validate(value: Any) -> Any:
        # An instance is converted to plain data first: msgspec checks types when it reads, not when an object is created.
        return msgspec.convert(msgspec.to_builtins(value) if isinstance(value, model) else value, foreign)

    schema = WithJsonSchema({"type": "object", "title": _name(foreign)})
    return Annotated[Any, PlainValidator(validate), PlainSerializer(msgspec.to_builtins), schema]


def _class_of(annotation: Any) -> Any:
    return get_origin(annotation) or annotation


def _name(annotation: Any) -> str:
    return getattr(annotation, "__name__", str(annotation))
