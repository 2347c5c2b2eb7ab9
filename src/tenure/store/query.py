"""A statement with its values and the type of its rows: what to run, apart from where it is run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeVar, get_type_hints

from tenure.store.json_columns import is_json, json_readers
from tenure.store.statements import PASSING_OVER

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Rows = list[tuple[Any, ...]]
"""As a driver returns them."""


class ColumnError(RuntimeError):
    """A statement returns other columns than its `Query` declares. This is a bug in the store."""


class Scalar(Generic[T_co]):
    """Declares a statement that returns one column: its rows are the values of that column."""


TEXT = Scalar[str]()
OPTIONAL_TEXT = Scalar["str | None"]()
INTEGER = Scalar[int]()
BOOLEAN = Scalar[bool]()


@dataclass(frozen=True, slots=True)
class Query(Generic[T_co]):
    name: str
    """The file below `sql/`, without its ending."""
    returns: type[T_co] | Scalar[T_co] | None
    """A NamedTuple whose fields are the statement's columns, a `Scalar`, or None for a statement that returns no rows. A field
    that is a NamedTuple itself has the columns of that one; one of type `Json[...]` is decoded from JSON text."""
    values: Mapping[str, Any] = field(default_factory=dict)

    def decode(self, rows: Rows, columns: Callable[[], Sequence[str]]) -> list[T_co]:
        """The rows as values of the declared type. `columns` returns the names of the columns. It is called once for each
        statement, so that decoding costs next to nothing."""
        decoder = _decoders.get((self.name, self.returns))
        if decoder is None:
            decoder = _decoders[self.name, self.returns] = _decoder(self.name, self.returns, columns())
        return decoder(rows)

    def passing_over(self, refused: str, *, only: tuple[str, ...] | None = None, peek: bool = False) -> Query[T_co]:
        """The same claim without the jobs in `refused`, a uuid[] literal. `only`: restricted to these jobs; `peek`: claim
        nothing, return the jobs that would be claimed."""
        more = {"refused": refused, "only": None if only is None else array_literal(only), "peek": peek}
        return replace(self, name=self.name + PASSING_OVER, values={**self.values, **more})


class Fetch(Protocol):
    """Runs a statement and returns its rows."""

    def __call__(self, query: Query[T], /) -> Awaitable[list[T]]: ...


def columns_of(row_type: Any) -> tuple[str, ...]:
    """The columns that a NamedTuple declares."""
    return tuple(column for name, inner in _fields(row_type) for column in ((name,) if inner is None else columns_of(inner)))


def array_literal(items: list[str] | tuple[str, ...]) -> str:
    """A text[] literal. The driver's own list adaptation costs more than the whole statement."""
    return "{" + ",".join('"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in items) + "}"


@dataclass(frozen=True, slots=True)
class Pick:
    """Which rows a batch statement takes."""

    only: tuple[str, ...] | None = None
    """None: any."""
    peek: bool = False
    """Change nothing, return which rows would be taken."""
    more: int = 0
    """Look at this many rows beyond the batch: known rows that will be left out."""

    def values(self, limit: int) -> dict[str, object]:
        return {"limit": limit + self.more, **self.unlimited()}

    def unlimited(self) -> dict[str, object]:
        """For a statement that takes all rows at once."""
        return {"only": None if self.only is None else array_literal(self.only), "peek": self.peek}


ALL = Pick()

_decoders: dict[tuple[str, object], Callable[[Rows], list[Any]]] = {}


def _decoder(name: str, returns: Any, columns: Sequence[str]) -> Callable[[Rows], list[Any]]:
    if returns is None:
        _check_columns(name, "no rows", (), columns)
        return lambda _rows: []
    if isinstance(returns, Scalar):
        if len(columns) != 1:
            raise ColumnError(f"{name} returns {len(columns)} columns ({', '.join(columns)}), but is declared as a scalar")
        return lambda rows: [row[0] for row in rows]
    declared = columns_of(returns)
    _check_columns(name, returns.__name__, declared, columns)
    if (make_claim := _claim_maker(returns, columns)) is not None:
        return lambda rows: list(map(make_claim, rows))
    if readers := json_readers(returns):
        make_plain = _maker(returns, {column: number for number, column in enumerate(columns)})
        return lambda rows: [_with_json(make_plain(row), readers) for row in rows]
    if declared == tuple(columns) and declared == returns._fields:
        # The columns are checked, so `_make` would only count them again for each row.
        make: Callable[[tuple[Any, ...]], Any] = partial(tuple.__new__, returns)
    else:
        make = _maker(returns, {column: number for number, column in enumerate(columns)})
    return lambda rows: list(map(make, rows))


def _maker(row_type: Any, at: Mapping[str, int]) -> Callable[[tuple[Any, ...]], Any]:
    first = at[columns_of(row_type)[0]]
    if [at[column] for column in row_type._fields if column in at] == list(range(first, first + len(row_type._fields))):
        last = first + len(row_type._fields)  # side by side and in order, as those of a claimed job: cut out at once
        return lambda row: tuple.__new__(row_type, row[first:last])
    takes = [itemgetter(at[name]) if inner is None else _maker(inner, at) for name, inner in _fields(row_type)]
    return lambda row: tuple.__new__(row_type, [take(row) for take in takes])


def _claim_maker(row_type: Any, columns: Sequence[str]) -> Callable[[tuple[Any, ...]], Any] | None:
    """For the rows of a claim, the most frequent statement: JSON that only the first row has, and a job that is the rest of the
    row. None if the rows have another shape."""
    [(first, _), *others] = _fields(row_type)
    read = json_readers(row_type).get(first)
    job_type = others[0][1] if len(others) == 1 else None
    if read is None or job_type is None or tuple(columns) != (first, *job_type._fields):
        return None
    new = tuple.__new__
    return lambda row: new(row_type, (row[0] if row[0] is None else read(row[0]), new(job_type, row[1:])))


def _check_columns(name: str, declared_as: str, declared: Sequence[str], columns: Sequence[str]) -> None:
    problems = [f"lacks column {column!r}" for column in declared if column not in columns]
    problems += [f"has the undeclared column {column!r}" for column in columns if column not in declared]
    problems += [f"has column {column!r} more than once" for column in sorted(set(columns)) if columns.count(column) > 1]
    if problems:
        raise ColumnError(f"{name} {', '.join(problems)}: it is declared to return {declared_as}")


def _fields(row_type: Any) -> Iterator[tuple[str, Any]]:
    """Each field of a NamedTuple, and its type if that is a NamedTuple as well."""
    hints = get_type_hints(row_type, include_extras=True)
    for name in row_type._fields:
        yield name, hints[name] if hasattr(hints[name], "_fields") and not is_json(hints[name]) else None


def _with_json(row: Any, readers: Mapping[str, Callable[[Any], Any]]) -> Any:
    return row._replace(**{name: read(getattr(row, name)) for name, read in readers.items()})
