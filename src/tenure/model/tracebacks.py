"""Shortens tracebacks to the code of the user."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

_OWN = f"{Path(__file__).parent.parent}{os.sep}"
_STANDARD_LIBRARY = f"{Path(os.__file__).parent}{os.sep}"
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def cut_to_user_code(error: BaseException) -> None:
    """Removes the frames through which Tenure called a handler or imported a module: they are the same in every traceback.

    What the user's code called in turn is kept, and so is the whole traceback if no frame is the user's. A SyntaxError of a
    module has no such frame: it names the file by itself.
    """
    frames: TracebackType | None = error.__traceback__
    while frames is not None and not _is_users(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    if frames is not None or isinstance(error, SyntaxError):
        BaseException.with_traceback(error, frames)  # past the exception's own methods, which may refuse


def _is_users(file: str) -> bool:
    if file.startswith((_OWN, "<frozen ")):
        return False
    return not file.startswith(_STANDARD_LIBRARY) or any(folder in file for folder in _INSTALLED)
