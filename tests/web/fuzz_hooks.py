"""Loaded by Schemathesis: most path parameters become the names and ids of what exists.

Without it nearly all requests for one job, chain or schedule are answered with 404, and their handlers are not tested. The choice
follows from the value that was generated, so that a seed makes the same requests for the same data.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import Any

import schemathesis

KNOWN: dict[str, list[str]] = json.loads(os.environ["FUZZ_KNOWN"])


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: _existing(KNOWN.get(name), value) for name, value in (path_parameters or {}).items()}


def _existing(known: list[str] | None, generated: Any) -> Any:
    chosen = zlib.crc32(str(generated).encode("utf-8", "replace"))
    if not known or chosen % 4 == 0:
        return generated
    return known[chosen // 4 % len(known)]
