"""The headers of a job: texts that hooks and middleware add to it, such as the context of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from tenure.model.errors import InvalidPayload
from tenure.model.payloads import plain_json


class Headers(dict[str, str]):
    """Read-only, because calls share them; a dict, because callers copy, pickle and encode what holds them."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("headers are read-only: use call.with_headers(...) or ctx.add_headers(...)")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[type[Headers], tuple[dict[str, str]]]:
        return Headers, (dict(self),)


NO_HEADERS = Headers()


def checked_headers(given: Mapping[Any, Any], *, what: str) -> Headers:
    """A copy of headers that PostgreSQL can store."""
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidPayload(f"{what} must be texts, but {name!r:.100} is {value!r:.100}")
    plain_json(dict(given), what=what)
    return Headers(given)
