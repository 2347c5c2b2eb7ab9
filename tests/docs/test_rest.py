"""The REST reference is what the script writes from the table of routes."""

from __future__ import annotations

import runpy

from tests.docs.pages import ROOT

SCRIPT = ROOT / "docs" / "reference" / "write_rest.py"


def test_the_rest_reference_is_current():
    written = runpy.run_path(str(SCRIPT))["page"]()
    assert (ROOT / "docs" / "reference" / "rest.md").read_text("utf-8") == written, f"run python {SCRIPT.relative_to(ROOT)}"
