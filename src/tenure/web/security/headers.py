"""The headers of every answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

# A report is one page with its style inside, without scripts and links.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'; sandbox"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_ENCODED = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


def add_headers(response: Response) -> Response:
    """Those that the answer does not set itself."""
    present = {name for name, _ in response.raw_headers}
    response.raw_headers.extend(header for header in _ENCODED if header[0] not in present)
    return response


LARGEST_HEAD = 16 * 1024  # bytes, of a request


def size_of_head(scope: Mapping[str, Any]) -> int:
    """Of the address with its query, and of the headers."""
    address = len(scope.get("raw_path") or scope["path"].encode()) + len(scope.get("query_string", b""))
    return address + sum(len(name) + len(value) + 4 for name, value in scope["headers"])
