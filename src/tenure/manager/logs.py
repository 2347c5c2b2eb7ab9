"""Logging of the processes that Tenure itself starts. A library that is imported leaves logging to its user."""

from __future__ import annotations

import logging
import os
import sys


def set_up_logging(level: str | None = None) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s[%(process)d] %(message)s", "%H:%M:%S"))
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(handler)
    root.setLevel((level or os.environ.get("TENURE_LOG", "INFO")).upper())
