"""Steps of workflows return JSON in the form in which PostgreSQL will return it to later runs."""

from __future__ import annotations

import json
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.model.payloads import as_stored

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=4)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=12
)


@given(VALUES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_json_is_read_as_postgresql_returns_it(database, value):
    text = json.dumps(value, ensure_ascii=False)
    [(stored,)] = database.sql("select %s::jsonb::text", text)
    # With the order of members, and the types of numbers.
    assert repr(json.loads(as_stored(text))) == repr(json.loads(stored))


def test_the_largest_and_smallest_numbers(database):
    numbers = [sys.float_info.max, -sys.float_info.max, sys.float_info.min, 5e-324, 1e16, 1.5e300, -0.0, 0.1]
    for text in (json.dumps(numbers), "[1E5, 1.50e1, 2e-3, -0, -0e5]"):
        [(stored,)] = database.sql("select %s::jsonb::text", text)
        assert repr(json.loads(as_stored(text))) == repr(json.loads(stored))
