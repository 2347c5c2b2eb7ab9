"""`python -m benchmarks.flat`: measures, writes the charts into docs/images and the figures into docs/operations/scale.md."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import machine
from benchmarks.flat import long_load, stock
from benchmarks.flat.chart import Chart, Line, short
from benchmarks.server import Server, open_server
from tenure.chaos.summary import publish, table

NAMES = [*(each.name for each in stock.STOCKS), "snapshot", "load"]
MB = 1 << 20


@dataclass
class Report:
    images: Path
    rows: list[tuple[str, ...]] = field(default_factory=list)
    load_rows: list[tuple[str, ...]] = field(default_factory=list)
    charts: list[str] = field(default_factory=list)

    def draw(self, name: str, chart: Chart) -> None:
        self.images.mkdir(parents=True, exist_ok=True)
        (self.images / f"flat-{name}.svg").write_text(chart.svg(), "utf-8")
        self.charts.append(f"![{chart.title}](../images/flat-{name}.svg)")

    def drains(self, name: str, title: str, across: str, found: Iterable[tuple[float, float]]) -> None:
        points = []
        for size, rate in found:
            print(f"{name}: {size:,.0f} {across}: {rate:,.0f} jobs/s", file=sys.stderr, flush=True)
            points.append((size, rate))
        self.draw(name, Chart(title, across, "jobs/s", [Line("drain", points)]))
        (_, first), (most, last) = points[0], points[-1]
        self.rows.append((title, f"{short(most)} {across}", f"{first:,.0f}", f"{last:,.0f}", f"{last / first:.2f}"))

    def load(self, rate: float, samples: list[long_load.Sample]) -> None:
        minutes = samples[-1].minutes
        title = f"{minutes:.0f} minutes at {rate:,.0f} jobs/s, half the peak"
        lines = [Line("p50", [(s.minutes, s.p50) for s in samples]), Line("p99", [(s.minutes, s.p99) for s in samples])]
        self.draw("load-wait", Chart(f"{title}: enqueue to start", "minutes", "ms", lines))
        sizes = [("table jobs", "table"), ("its indexes", "indexes")]
        lines = [Line(name, [(s.minutes, getattr(s, key) / MB) for s in samples]) for name, key in sizes]
        self.draw("load-size", Chart(f"{title}: size on disk", "minutes", "MB", lines))
        first, last = quarters(samples)
        for name, key, unit, size in (
            ("enqueue to start, p50", "p50", "ms", 1),
            ("enqueue to start, p99", "p99", "ms", 1),
            ("table jobs", "table", "MB", MB),
            ("its indexes", "indexes", "MB", MB),
        ):
            before, after = (statistics.median(getattr(sample, key) for sample in part) / size for part in (first, last))
            ratio = f"{after / before:.2f}" if before else ""
            self.load_rows.append((f"{title}: {name}", f"{before:,.1f} {unit}", f"{after:,.1f} {unit}", ratio))
        self.draw(
            "load-rate", Chart(f"{title}: completed", "minutes", "jobs/s", [Line("rate", [(s.minutes, s.rate) for s in samples])])
        )

    def markdown(self, surveyed: machine.Machine) -> str:
        heads = ("", "with", "jobs/s without", "jobs/s with", "ratio")
        load_heads = ("", "median of the first quarter", "median of the last quarter", "ratio")
        tables = [table(given, rows) for given, rows in ((heads, self.rows), (load_heads, self.load_rows)) if rows]
        return "\n\n".join([f"{surveyed}.", *map("\n".join, tables), *self.charts])


def quarters(samples: list[long_load.Sample]) -> tuple[list[long_load.Sample], list[long_load.Sample]]:
    """The first and the last quarter, at least one sample each."""
    count = max(1, len(samples) // 4)
    return samples[:count], samples[-count:]


def main() -> None:
    options = _options()
    report = Report(options.images)
    with open_server(None) as server:
        surveyed = machine.survey(server)
        print(surveyed, file=sys.stderr, flush=True)
        for name in options.only:
            _measure(server, name, report, options)
    text = report.markdown(surveyed)
    if options.publish:
        publish(options.publish, "flat", text)
    print(text)


def _measure(server: Server, name: str, report: Report, options: argparse.Namespace) -> None:
    jobs = options.jobs
    if name == "snapshot":
        found = stock.behind_snapshot(server, jobs, options.share)
        report.drains(name, "Drain behind a held snapshot", "jobs finished since it was taken", found)
    elif name == "load":
        rate = long_load.peak(server) / 2
        report.load(rate, long_load.run(server, rate, options.seconds))
    else:
        [burden] = (each for each in stock.STOCKS if each.name == name)
        found = stock.measure(server, burden, jobs, options.rounds, options.share)
        report.drains(name, burden.title, burden.across, found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.flat", description="Does the speed stay the same with more rows and under long load?"
    )
    parser.add_argument("--only", type=_names, default=NAMES, metavar="NAMES", help=f"some of {','.join(NAMES)}")
    parser.add_argument("--jobs", type=int, default=50_000, help="in each drain (50,000)")
    parser.add_argument("--rounds", type=int, default=3, help="drains at each size; the median counts (3)")
    parser.add_argument("--share", type=float, default=1.0, help="of the full sizes, for a first look (1)")
    parser.add_argument("--seconds", type=float, default=7_200.0, help="of the long load (7,200)")
    parser.add_argument("--images", type=Path, default=Path("docs/images"), help="where the charts go (docs/images)")
    parser.add_argument("--publish", type=Path, metavar="PAGE", help="write the table and the charts into this page")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in NAMES]:
        raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}: choose from {','.join(NAMES)}")
    return names


if __name__ == "__main__":
    main()
