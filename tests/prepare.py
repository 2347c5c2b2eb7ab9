"""Installs what the slow tests need and pip does not have, so that they need not wait for it: python -m tests.prepare

Tests that come first wait for the same locks, and what is still missing they install themselves.
"""

from __future__ import annotations

from tests.npm import PAGES, TYPES, packages
from tests.system_packages import chromium, install_missing, nginx
from tests.web.dashboard.browser import PACKAGES


def prepare() -> None:
    install_missing()
    for wanted in (PACKAGES, TYPES, PAGES):
        packages(*wanted)
    nginx()
    chromium()


if __name__ == "__main__":
    prepare()
