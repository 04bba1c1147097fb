"""What a run found, as a text table, as JSON and as a plot."""

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.measures.timing import Ratio, Spread, ratio, spread
from bench.spark.jars import DELTA, ICEBERG

_UNITS = {
    "seconds": ("ms", 1000.0),
    "processor seconds": ("ms of processor", 1000.0),
    "megabytes": ("MB", 1.0),
    "requests": ("requests", 1.0),
}
_LONG_SECONDS = 10


@dataclass(frozen=True)
class Result:
    """One metric of one case at one place: the values of each system, round by round.

    `targets` have the most that our median may be, as a part of a peer's; a peer that is not among them is
    there for reference. Other forms of our own system are named after it, with a hyphen, and do not count as
    peers.
    """

    case: str
    place: str
    metric: str
    values: Mapping[str, list[float]]
    targets: Mapping[str, float] = field(default_factory=dict)

    def spreads(self) -> dict[str, Spread]:
        return {system: spread(values) for system, values in self.values.items()}

    def ratios(self, ours: str) -> dict[str, Ratio]:
        """Ours over each peer's."""
        if ours not in self.values:
            return {}
        return {peer: ratio(self.values[ours], v) for peer, v in self.values.items() if peer != ours}


@dataclass
class Report:
    """All results of one run. `title` names the run and its files."""

    title: str
    ours: str
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    results: list[Result] = field(default_factory=list)

    def text(self) -> str:
        """One line per system, so that a narrow terminal shows it whole."""
        head = ("case", "place", "system", "median", "quartiles", "n", "ours / it", "95% interval", "target")
        lines = [head, *(line for result in self.results for line in self._lines(result))]
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        rule = tuple("-" * width for width in widths)
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in (head, rule, *lines[1:])
        ]
        return "\n".join([self._caption(), "", *table])

    def _lines(self, result: Result) -> Iterator[tuple[str, ...]]:
        spreads = result.spreads()
        unit, factor = _unit(result.metric, spreads)
        ratios = result.ratios(self.ours)
        for system, seen in spreads.items():
            compared: tuple[str, str, str] = ("", "", "")
            if system in ratios:
                found = ratios[system]
                compared = (f"{found.value:.2f}", f"{found.low:.2f} - {found.high:.2f}", "")
                target = result.targets.get(system)
                if target is not None and not system.startswith(self.ours):
                    verdict = "met" if found.value <= target else "missed"
                    compared = (*compared[:2], f"<= {target:g}: {verdict}")
            yield (
                result.case,
                result.place,
                system,
                f"{seen.median * factor:.4g} {unit}",
                f"{seen.lower * factor:.4g} - {seen.upper * factor:.4g}",
                str(seen.count),
                *compared,
            )

    def _caption(self) -> str:
        packages = ", ".join(f"{name} {version(name)}" for name in ("lakevilla", "deltalake", "pyspark"))
        packages += "".join(f", {jar.split(':')[1]} {jar.split(':')[2]}" for jar in (*DELTA, *ICEBERG))
        machine = f"{platform.machine()}, Python {platform.python_version()}"
        return f"{self.title}, {self.started:%Y-%m-%d %H:%M} UTC, {machine}, {packages}"

    def json(self) -> dict[str, Any]:
        """Everything, each single value included."""
        return {
            "title": self.title,
            "caption": self._caption(),
            "results": [
                {
                    **asdict(result),
                    "spreads": {name: asdict(seen) for name, seen in result.spreads().items()},
                    "ratios": {name: asdict(found) for name, found in result.ratios(self.ours).items()},
                }
                for result in self.results
            ],
        }

    def tell(self, folder: Path) -> None:
        """Print it, and write text, JSON and, if anything was compared, a plot, named by title and time."""
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{self.title}-{self.started:%Y%m%d-%H%M%S}"
        text, values, plot = (folder / f"{stem}.{kind}" for kind in ("txt", "json", "png"))
        text.write_text(self.text() + "\n")
        values.write_text(json.dumps(self.json(), indent=1) + "\n")
        written = [text, values]
        if compared := self._compared():
            self._plot(compared, plot)
            written.append(plot)
        print(self.text())
        print("\n" + "\n".join(f"written: {path}" for path in written))

    def _compared(self) -> list[tuple[str, Ratio, float | None]]:
        """What is in the plot: a label, the ratio, and the target if there is one."""
        return [
            (f"{result.case}, {result.metric}, {result.place}\nvs {peer}", found, result.targets.get(peer))
            for result in self.results
            for peer, found in result.ratios(self.ours).items()
            if not peer.startswith(self.ours)
        ]

    def _plot(self, compared: list[tuple[str, Ratio, float | None]], path: Path) -> None:
        """Each ratio with its interval on a logarithmic axis; left of the line at 1 we are better."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.42 * len(compared)))
        for place, (_, found, target) in enumerate(compared):
            met = target is None or found.value <= target
            axes.plot([found.low, found.high], [place, place], color="0.6", linewidth=3)
            axes.plot(found.value, place, "o", color="tab:green" if met else "tab:red")
            if target is not None:
                axes.plot(target, place, "|", color="black", markersize=14)
        axes.set_yticks(range(len(compared)), [label for label, _, _ in compared], fontsize=7)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.axvline(1, color="0.8", zorder=0)
        axes.set_xlabel(f"{self.ours} / peer: ratio of medians, 95% interval; the tick is the target")
        axes.set_title(self._caption(), fontsize=8)
        figure.tight_layout()
        figure.savefig(path, dpi=110)
        pyplot.close(figure)


def _unit(metric: str, spreads: Mapping[str, Spread]) -> tuple[str, float]:
    """How a metric is told, the same for every system."""
    if metric == "seconds" and max(seen.median for seen in spreads.values()) >= _LONG_SECONDS:
        return "s", 1.0
    return _UNITS[metric]
