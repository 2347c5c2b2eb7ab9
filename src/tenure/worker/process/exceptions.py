"""Carries what a handler raised in its process to the worker, as the same exception.

Middleware, logs and error trackers see the class they know, with its attributes, and the original traceback as its cause.
Only classes of modules that the worker has imported anyway are used: an exception must not make it import anything.
"""

from __future__ import annotations

import pickle
import sys
from base64 import b64decode, b64encode
from io import BytesIO
from types import FunctionType
from typing import Any, NamedTuple

from tenure.model.errors import RemoteError
from tenure.model.payloads import clean_text

LARGEST = 64 * 1024
"""Bytes of an exception's attributes. A larger one arrives as `RemoteError`."""

HANDLER_MAIN = "__tenure_main__"
"""The name under which the worker's main program runs in a handler process."""

_MARK = "_tenure_remote"


class Remote(NamedTuple):
    text: str
    """The traceback, as it was there."""
    wanted: bool
    """Whether the kind's retry policy wants another attempt; it was asked there."""


class RemoteTraceback(Exception):  # noqa: N818 - the cause of the exception that it belongs to
    def __str__(self) -> str:
        return f'in another process:\n"""\n{self.args[0]}"""'


def remote_of(error: BaseException) -> Remote | None:
    """The traceback and the retry decision of an error that came from another process."""
    remote = getattr(error, _MARK, None)
    return remote if isinstance(remote, Remote) else None


# In the handler's process


def packed(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    return {
        "module": kind.__module__,
        "name": kind.__qualname__,
        "message": _message(error),
        "state": _state(error) if isinstance(error, Exception) else None,
    }


def _message(error: BaseException) -> str:
    try:
        return clean_text(str(error))
    except Exception:  # noqa: BLE001 - an exception's own code may raise anything
        return ""


def _state(error: Exception) -> str | None:
    """What it takes to make the same exception; None when it cannot be carried."""
    try:
        made = error.__reduce_ex__(2)
        if made[0] is not type(error):
            return None
        text = pickle.dumps((made[1], made[2] if len(made) > 2 else None))
    except Exception:  # noqa: BLE001 - attributes of any kind, with code of their own
        return None
    return b64encode(text).decode() if len(text) <= LARGEST else None


# In the worker's process


def unpacked(packed: dict[str, Any], remote: Remote) -> Exception:
    error = _same(packed) or RemoteError(f"{packed['module']}.{packed['name']}", packed["message"], remote.text)
    # Past the exception's own __setattr__, which may refuse.
    object.__setattr__(error, _MARK, remote)
    object.__setattr__(error, "__cause__", RemoteTraceback(remote.text))
    return error


def _same(packed: dict[str, Any]) -> Exception | None:
    kind = _known_class(packed["module"], packed["name"])
    if kind is None or packed["state"] is None:
        return None
    try:
        arguments, attributes = _Known(BytesIO(b64decode(packed["state"]))).load()
        return _rebuilt(kind, arguments, attributes)
    except Exception:  # noqa: BLE001 - attributes of any kind, with code of their own
        return None


def _rebuilt(kind: type[Exception], arguments: tuple[Any, ...], attributes: dict[str, Any] | None) -> Exception:
    # An __init__ in Python rarely takes what it passed on to its parent, which is all that `args` holds.
    if kind.__reduce__ is BaseException.__reduce__ and isinstance(kind.__init__, FunctionType):
        error = kind.__new__(kind, *arguments)
        object.__setattr__(error, "args", arguments)
        error.__dict__.update(attributes or {})
        return error
    error = kind(*arguments)
    if attributes:
        error.__setstate__(attributes)
    return error


def _known_class(module: str, name: str) -> type[Exception] | None:
    found: Any = sys.modules.get("__main__" if module == HANDLER_MAIN else module)
    for part in name.split("."):
        found = getattr(found, part, None)
    known = isinstance(found, type) and issubclass(found, Exception)
    # Neither of the two can be raised by a coroutine.
    return found if known and not issubclass(found, StopIteration | StopAsyncIteration) else None


class _Known(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module not in sys.modules:
            raise pickle.UnpicklingError(f"{module} is not imported here")
        return super().find_class(module, name)
