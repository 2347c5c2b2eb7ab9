"""The app of the catalogue. Its kinds stand in `kinds_*.py`; `catalogue.py` has them all."""

from __future__ import annotations

from tenure import Tenure

app = Tenure()
