"""The input of each measured job: 100 bytes. This module imports nothing, because peers read it in environments of their own."""

from __future__ import annotations

from typing import Any

PAYLOAD: dict[str, Any] = {
    "user_id": 12345,
    "template": "welcome",
    "to": "someone@example.com",
    "n": 1,
    "pad": "x" * 24,
}
