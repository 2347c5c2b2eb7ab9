"""The dashboard at `/`, and `/static/`: its files, and the tracker for pages (`clients/js`). They need no token: there are no
secrets in them."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

STATIC = Path(__file__).parent / "static"
TRACKER = Path(__file__).parents[3] / "clients" / "js" / "tenure.js"
"""In a checkout the tracker is where npm packs it. A wheel has it in `static`."""

PAGE = "dashboard/index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticFile(NamedTuple):
    content: bytes
    packed: bytes
    """With gzip."""
    etag: str
    media_type: str


@cache
def _known() -> dict[str, Path]:
    """Every file by its path below `/static/`. No request can read anything else."""
    found = {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.suffix in TYPES}
    found.setdefault("tenure.js", TRACKER)
    return found


@cache
def _read(path: Path, changed: int) -> StaticFile:  # noqa: ARG001 - a file that changes in a checkout is read again
    content = path.read_bytes()
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return StaticFile(content, gzip.compress(content, 9, mtime=0), etag, TYPES[path.suffix])


def static_response(request: Request, name: str) -> Response | None:
    """None: there is no such file. Asked for again by every page, so that modules of two versions never meet; the answer is
    mostly 304."""
    path = _known().get(name)
    if path is None:
        return None
    file = _read(path, path.stat().st_mtime_ns)
    headers = {"ETag": file.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    packed = "gzip" in request.headers.get("accept-encoding", "")
    if packed:
        headers["Content-Encoding"] = "gzip"
    return Response(file.packed if packed else file.content, headers=headers, media_type=file.media_type)
