"""The app of the catalogue. Its jobs are defined in `kinds_*.py`; `catalogue.py` collects them."""

from __future__ import annotations

from tenure import Tenure

app = Tenure()
