"""The text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

Sample = tuple[Mapping[str, str], float]
"""Labels and value."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metric(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    """The lines of one metric."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for given, value in samples:
        yield f"{name}{labels(given)} {number(value)}"


def histogram_samples(name: str, given: Mapping[str, str], buckets: Sequence[tuple[float, int]], total: float) -> Iterator[str]:
    """`buckets`: upper bounds, rising, and how many values are in each; those above the last bound have the bound infinity."""
    below = 0
    for bound, count in buckets:
        below += count
        text = "+Inf" if bound == float("inf") else f"{bound:.6g}"
        yield f"{name}_bucket{labels({**given, 'le': text})} {below}"
    if not buckets or buckets[-1][0] != float("inf"):
        yield f"{name}_bucket{labels({**given, 'le': '+Inf'})} {below}"
    yield f"{name}_sum{labels(given)} {total:.6f}"
    yield f"{name}_count{labels(given)} {below}"


def labels(given: Mapping[str, str]) -> str:
    if not given:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in given.items()) + "}"


def number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.6f}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
