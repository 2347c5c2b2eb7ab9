"""`/static/tenure.js`: the tracker for pages (`clients/js`). It contains no secrets, so it needs no token."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

FOLDERS = (Path(__file__).parent / "static", Path(__file__).parents[3] / "clients" / "js")
"""A wheel has the file beside this module. A checkout has it once, where npm packs it."""


class StaticFile(NamedTuple):
    content: bytes
    etag: str


@cache
def tracker() -> StaticFile:
    content = next(path for folder in FOLDERS if (path := folder / "tenure.js").exists()).read_bytes()
    return StaticFile(content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def tracker_response(request: Request) -> Response:
    """Asked for again by every page, so that a page never uses the tracker of another version; the answer is mostly 304."""
    file = tracker()
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type="text/javascript; charset=utf-8")
