"""Staying with a job until it has ended: progress while it prepares, its logs while it runs, the verdict."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from muster.cli.exit_codes import ExitCode, code_of_job
from muster.cli.footer import keep_footer
from muster.cli.output.job_sentences import changes, status_words, verdict_words
from muster.cli.output.log_printer import LogPrinter, style_for
from muster.cli.output.logs import LogStyle
from muster.cli.output.screen import is_drawn, is_terminal, say, screen
from muster.client.client import Client
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView, LogLine

_DRAIN = 15.0
"""Seconds that the rest of the logs may take once the job has ended; a lost node never sends its rest."""

_BEFORE_RUNNING = frozenset({JobPhase.WAITING, JobPhase.QUEUED, JobPhase.PREPARING})
"""Phases in which there is no log yet."""

_T = TypeVar("_T")


async def follow(
    client: Client,
    job: JobView,
    *,
    stops: bool = False,
    on_start: Callable[[JobView], None] | None = None,
) -> int:
    """Show how the job gets on until it has ended; progress and verdict on stderr, logs on stdout.

    Ctrl-C leaves the job alone, or stops it first if `stops`. `on_start` is called once, before the first log line.
    """
    if sys.stderr.isatty():
        _say(f"{job.spec.name} ({job.id}) is submitted")
    ending = "Ctrl-C stops it" if stops else "Ctrl-C leaves it"
    ended = await attend(client, job, _progress_then_logs(client, job, on_start, ending), stops=stops)
    if ended is None:
        return ExitCode.INTERRUPTED
    print_verdict(ended, err=True)
    return code_of_job(ended)


def print_verdict(job: JobView, *, err: bool = False) -> None:
    """Say how the job ended."""
    stream = sys.stderr if err else sys.stdout
    if not is_drawn(stream):
        say("".join(verdict_words(job)), err=err)
        return
    from muster.cli.output.jobs import verdict

    screen(err=err).print(verdict(job), soft_wrap=err)


async def attend(client: Client, job: JobView, staying: Coroutine[Any, Any, _T], *, stops: bool = False) -> _T | None:
    """What `staying` gives in the end; None if Ctrl-C ended it, and then the user knows how to come back.

    With `stops` the first Ctrl-C stops the job and the second leaves.
    """
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(staying, name=f"stay with {job.id}")
        pressed = 0

        def interrupt() -> None:
            nonlocal pressed
            pressed += 1
            if stops and pressed == 1:
                _say(f"stopping {job.spec.name} ({job.id}); Ctrl-C again leaves at once")
                tasks.create_task(client.jobs.stop(job.id), name=f"stop {job.id}")
            else:
                task.cancel()

        with _on_interrupt(interrupt):
            await asyncio.wait([task])
    if not task.cancelled():
        return task.result()
    stopping = "which is being stopped" if stops else "which goes on"
    _say(f"left {job.spec.name} ({job.id}), {stopping}; `muster logs -f {job.id}` comes back to it")
    return None


async def _progress_then_logs(
    client: Client,
    job: JobView,
    on_start: Callable[[JobView], None] | None,
    ending: str,
) -> JobView:
    latest = [job]
    async with asyncio.TaskGroup() as tasks:
        printing: asyncio.Task[None] | None = None
        telling: asyncio.Task[None] | None = None
        with closing(_progress_screen()) as shown:
            async with aclosing(client.jobs.watch(job)) as views:
                async for view in views:
                    job = latest[0] = view
                    if printing is None:
                        shown.show(job)
                    if printing is None and job.attempts and job.phase not in _BEFORE_RUNNING:
                        shown.close()
                        if on_start is not None:
                            on_start(job)
                        printer = LogPrinter(style_for(job))
                        printing = tasks.create_task(_print_logs(client, job, printer), name=f"logs of {job.id}")
                        telling = tasks.create_task(_keep_footer(printer, latest, ending), name=f"status of {job.id}")
        if telling is not None:
            telling.cancel()
        if printing is not None:
            await asyncio.wait([printing], timeout=_DRAIN)
            if printing.cancel():
                _say("the rest of the logs has not come; `muster logs` shows them later")
    return job


async def _print_logs(client: Client, job: JobView, printer: LogPrinter) -> None:
    with printer:
        async for line in client.jobs.logs(job, follow=True):
            printer.print(line)


async def follow_logs(client: Client, job: JobView, lines: AsyncGenerator[LogLine, None], style: LogStyle) -> bool:
    """Print lines as they come; at a terminal the last lines say how the job stands. True once all have come."""
    latest = [job]
    async with asyncio.TaskGroup() as tasks:
        with LogPrinter(style) as printer:
            beside: list[asyncio.Task[None]] = []
            if is_terminal():
                beside.append(tasks.create_task(_keep_latest(client, latest), name=f"state of {job.id}"))
                beside.append(tasks.create_task(_keep_footer(printer, latest, "Ctrl-C leaves it"), name="footer"))
            async with aclosing(lines):
                async for line in lines:
                    printer.print(line)
            for each in beside:
                each.cancel()
    return True


async def _keep_latest(client: Client, latest: list[JobView]) -> None:
    async with aclosing(client.jobs.watch(latest[0])) as views:
        async for view in views:
            latest[0] = view


async def _keep_footer(printer: LogPrinter, latest: Sequence[JobView], ending: str) -> None:
    """Keep the last lines of a terminal up to date while a job runs, so that a silent one is seen to run."""
    await keep_footer(printer.open_lines, lambda: f"{status_words(latest[0], datetime.now(UTC))} · {ending}")


class _Progress(Protocol):
    def show(self, job: JobView) -> None: ...

    def close(self) -> None: ...


class _ProgressLines:
    """A line for each change."""

    def __init__(self) -> None:
        self._last: JobView | None = None

    def show(self, job: JobView) -> None:
        for line in changes(self._last, job, datetime.now(UTC)):
            _say(line)
        self._last = job

    def close(self) -> None:
        """Nothing is held."""


def _progress_screen() -> _Progress:
    if not sys.stderr.isatty():
        return _ProgressLines()
    from muster.cli.output.progress_table import ProgressTable

    return ProgressTable()


@contextmanager
def _on_interrupt(act: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, act)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _say(text: str) -> None:
    say(text, err=True, flush=True)
