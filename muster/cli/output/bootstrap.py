"""Computers that become nodes: what was found, what is planned, what is being done, how it ended."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from muster.bootstrap.inspect.checks import Finding, Severity
from muster.bootstrap.installation.outcome import SUCCESSES, Outcome, Status
from muster.bootstrap.installation.work import Candidate
from muster.cli.output.screen import say
from muster.cli.output.tables import TextTable, joined, listing, sentences, shown

_STYLES = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.ERROR: "red"}


def findings_table(hosts: Sequence[tuple[str, Sequence[Finding]]]) -> Table:
    """Each finding with its remedy below."""
    rows: list[tuple[str | Text, ...]] = []
    for host, findings in hosts:
        for number, finding in enumerate(findings):
            said = shown(finding.sentence)
            if finding.remedy:
                said.append("\n").append_text(shown(f"-> {finding.remedy}", "dim"))
            mark = shown(finding.severity, _STYLES[finding.severity])
            rows.append((host if number == 0 else "", mark, finding.id, said))
    return sentences(("HOST", "", "CHECK", "FOUND"), rows)


def plans(candidates: Sequence[Candidate]) -> RenderableType:
    """What would be done on each, and what is to be known before."""
    parts: list[RenderableType] = []
    for candidate in candidates:
        parts.append(joined(shown(candidate.host, "bold"), f" -> {candidate.node}" if candidate.node else ""))
        if candidate.plan is None:
            parts.append(shown(f"  error: {candidate.seen.problem}", "red"))
            continue
        for finding in candidate.notable:
            parts.append(shown(f"  {finding.severity}: {finding.sentence}", _STYLES[finding.severity]))
            if finding.remedy:
                parts.append(shown(f"    -> {finding.remedy}", "dim"))
        if not candidate.plan.blockers:
            steps = list(map(str, candidate.plan.steps)) or ["nothing; all is as it should be"]
            parts += [shown(f"  {number}. {step}") for number, step in enumerate(steps, 1)]
    return Group(*parts)


def outcomes_table(outcomes: Sequence[Outcome]) -> RenderableType:
    """How it ended with each."""
    rows = (
        (
            outcome.host,
            outcome.node or "-",
            shown(outcome.status, "green" if outcome.status in SUCCESSES else "red"),
            f"{outcome.seconds:.0f} s" if outcome.seconds else "-",
            "; ".join(filter(None, (outcome.message, *(f"left: {each}" for each in outcome.left)))),
        )
        for outcome in outcomes
    )
    return sentences(("HOST", "NODE", "RESULT", ">TIME", "DETAIL"), rows)


class InstallProgress:
    """What is being done now: a live table on a terminal, a line for each change elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._doing: dict[str, tuple[str, float]] = {}
        self._live: Live | None = None

    def tell(self, host: str, doing: str) -> None:
        """Something else is being done now."""
        self._doing[host] = (doing, time.monotonic())
        if self._live is None:
            say(f"{host}: {doing}", err=True, flush=True)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it until the context ends."""
        if not self._console.is_terminal:
            yield
            return
        with Live(get_renderable=self._table, console=self._console, refresh_per_second=4, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def _table(self) -> TextTable:
        now = time.monotonic()
        ended = set(map(str, Status))
        return listing(
            ("HOST", "DOING", ">SINCE"),
            (
                (host, doing, "" if doing.partition(":")[0] in ended else f"{now - since:.0f} s")
                for host, (doing, since) in self._doing.items()
            ),
        )


def document_of(outcomes: Sequence[Outcome], *, dry_run: bool) -> Mapping[str, object]:
    """The answer for programs."""
    return {
        "dry_run": dry_run,
        "succeeded": all(outcome.status in SUCCESSES for outcome in outcomes),
        "nodes": outcomes,
    }
