"""The progress of a job on a terminal."""

from datetime import UTC, datetime

from rich.console import RenderableType
from rich.live import Live

from muster.cli.output.progress import progress
from muster.cli.output.screen import screen
from muster.domain.jobs.view import JobView


class ProgressTable:
    """A table that is drawn again and again in the same place, and gone in the end."""

    def __init__(self) -> None:
        self._job: JobView | None = None
        self._live = Live(console=screen(err=True), get_renderable=self._draw, transient=True, refresh_per_second=5)

    def show(self, job: JobView) -> None:
        """Draw it as it is now."""
        self._job = job
        self._live.start(refresh=True)

    def close(self) -> None:
        """Leave nothing of it; harmless when repeated."""
        self._live.stop()

    def _draw(self) -> RenderableType:
        return "" if self._job is None else progress(self._job, datetime.now(UTC))
