"""Values that users put into a job: most of them are JSON, some only look like it."""

from __future__ import annotations

import os

from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("TENURE_FUZZ_EXAMPLES", "8"))
"""Lists of values that each test draws."""


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


# Letters of all scripts, controls, NUL, lone surrogates.
ANY_TEXT = st.text(st.characters(codec=None), max_size=60)
HOSTILE_TEXT = st.sampled_from(
    [
        "\x00",
        "a\x00b",
        "\ud800",
        "\udfff\ud800",
        "\\u0000",
        '"\\ud800"',
        "NaN",
        "Infinity",
        "\u2028",
        "\U0010ffff",
        "{}",
        "'; drop table",
        "%s %(a)s :b",
        "\r\n",
    ]
)
TEXT = ANY_TEXT | HOSTILE_TEXT
NUMBERS = (
    st.integers()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.sampled_from([-0.0, 1e308, 5e-324, 10**400, 2**63, -(2**63) - 1])
)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXT
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXT, inner, max_size=6), max_leaves=25)
LARGE = st.builds(
    lambda word, times: word * times,
    st.sampled_from(["x", "é", "\U0001f600", "\\", '"', "\x01"]),
    st.sampled_from([1_000, 70_000, 400_000, 1_100_000]),
)
DEEP = st.builds(nested, st.sampled_from([10, 60, 64, 65, 100, 900]))
# Left out: what pydantic has a JSON form for, as bytes, sets, complex numbers, and keys that are not text.
NOT_JSON = st.sampled_from([object(), lambda: None, float("nan"), [float("inf")], {"a": object()}])
VALUES = JSON | LARGE | DEEP | NOT_JSON
