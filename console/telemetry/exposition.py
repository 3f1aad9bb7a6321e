"""Metrics as text, in the form that Prometheus reads.

The form: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format. Written here, as the client
library of Prometheus keeps every series as an object: at 24,000 series it took fifty times as long.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LINES_OF_METRICS = 2_000
"""Lines that are written at once; others have their turn in between."""


class MetricKind(StrEnum):
    """How values of a metric follow each other: https://prometheus.io/docs/concepts/metric_types/."""

    GAUGE = "gauge"  #: it goes up and down
    COUNTER = "counter"  #: it grows, and begins anew with the program
    HISTOGRAM = "histogram"  #: counts of what was measured, up to each of some bounds, with its sum and number


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity, and what it is of each of several things."""

    name: str
    help: str
    """Empty: it belongs to the metric before it, which says what it is."""
    kind: MetricKind = MetricKind.GAUGE
    family: str = ""
    """What it is called together with those that belong to it; empty: its own name."""
    series: list[tuple[Mapping[str, str], float]] = field(default_factory=list)
    """The labels of each thing, and its value."""

    def add(self, value: float | None, **labels: str) -> None:
        """Have the value of one more thing; None: nobody knows it."""
        if value is not None:
            self.series.append((labels, value))


def metric_of(name: str, help_text: str, value: float | None, kind: MetricKind = MetricKind.GAUGE) -> Metric:
    """A quantity of which there is one alone; None: nobody knows it."""
    metric = Metric(name, help_text, kind)
    metric.add(value)
    return metric


@dataclass(frozen=True, slots=True)
class Times:
    """How long something took, each time that it was done."""

    counts: Sequence[int]
    """How often it took at most so long as each bound says, but more than the one before; the last: longer."""
    seconds: float
    """How long it took in all."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What it is one of; empty: there is one alone."""


def histogram(family: str, help_text: str, bounds: Sequence[float], several: Iterable[Times]) -> tuple[Metric, ...]:
    """What Prometheus is told of such times: https://prometheus.io/docs/concepts/metric_types/#histogram."""
    buckets = Metric(f"{family}_bucket", help_text, MetricKind.HISTOGRAM, family)
    sums, counts = Metric(f"{family}_sum", ""), Metric(f"{family}_count", "")
    for times in several:
        upto = 0
        for bound, count in zip((*map(str, bounds), "+Inf"), times.counts, strict=True):
            upto += count
            buckets.add(upto, **times.labels, le=bound)
        sums.add(times.seconds, **times.labels)
        counts.add(upto, **times.labels)
    return buckets, sums, counts


def exposition(metrics: Iterable[Metric]) -> Iterator[str]:
    """The text of metrics, in pieces of so many lines; a metric of nothing is left out."""
    lines: list[str] = []
    for metric in metrics:
        if metric.series and metric.help:
            family = metric.family or metric.name
            lines.append(f"# HELP {family} {_escaped(metric.help)}\n# TYPE {family} {metric.kind}\n")
        for labels, value in metric.series:
            named = ",".join([f'{name}="{_quoted(text)}"' for name, text in labels.items()])  # a list is faster
            lines.append(f"{metric.name}{{{named}}} {value:.17g}\n" if named else f"{metric.name} {value:.17g}\n")
            if len(lines) >= LINES_OF_METRICS:
                yield "".join(lines)
                lines.clear()
    if lines:
        yield "".join(lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"') if '"' in text or "\\" in text or "\n" in text else text
