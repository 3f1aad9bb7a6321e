"""The console's composition root: the connection to the coordinator, the server, and a clean end."""

import asyncio
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial

from console.alerts.alert import AlertSign
from console.alerts.alert_watch import AlertWatch
from console.alerts.certificate import certificate_end, certificate_signs
from console.api.app import ConsoleParts, application
from console.api.listener import ConsoleListener
from console.api.sessions.session import SessionSeal, session_key
from console.events.failing.streaks import DeliveryStreaks
from console.events.failing.told import delivery_signs
from console.events.notifier import held_outbox, notify, send_test
from console.events.notify_file import NotifySettings, read_notify_file
from console.events.own_events import OwnEvents
from console.mirror.follower import MirrorFollower
from console.settings import ConsoleSettings, parse
from console.telemetry.gangs.watcher import GangWatcher
from console.telemetry.history.recorder import HistoryRecorder, held_history
from console.telemetry.runs.listener import follow_events
from console.telemetry.runs.run_counts import RunCounts
from console.telemetry.sample_follower import follow_samples
from console.upstream.callers import Callers
from console.watched.follows import SharedFollows
from muster.daemon.journal import configure
from muster.daemon.refusal import refusing
from muster.daemon.systemd import Systemd
from muster.domain.errors import ConflictError, MusterError
from muster.trust.files import read_secret, write_private

log = logging.getLogger(__name__)

Work = Callable[[], Coroutine[None, None, None]]
"""Something that a console does for as long as it runs."""


def main() -> None:
    """Entry point of `muster-console`."""
    settings = parse(sys.argv[1:], os.environ)
    os.environ.pop("MUSTER_PROJECT", None)  # jobs are in the project that their callers say
    systemd = Systemd(os.environ)
    configure(settings.log_level, form=settings.log_format)
    faulthandler.enable()  # a loop that hangs is ended by SIGABRT, and the log says where it hung
    with refusing("muster-console"):
        asyncio.run(run(settings, systemd) if not settings.notify_test else send_one_test(settings))


async def run(settings: ConsoleSettings, systemd: Systemd) -> None:
    """Serve until SIGTERM or SIGINT; raises MusterError where that cannot be."""
    stopped = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    seal = SessionSeal(session_key(settings.state))
    async with AsyncExitStack() as stack:
        callers = await stack.enter_async_context(Callers(settings.coordinator, _authority(settings)))
        own = OwnEvents()
        beside: list[Work] = []
        history = _history(settings, stack)
        ends = await asyncio.to_thread(certificate_end, settings.cert)
        parts = ConsoleParts(certificate_ends=ends)
        if settings.token_file is None:
            log.info("the console keeps no mirror and no history, as it was given no token of its own")
        else:
            client = await callers.client(read_secret(settings.token_file))
            follower = MirrorFollower(client)
            streaks = DeliveryStreaks()
            notifying = _notifying(settings, callers, stack, partial(notify, own=own, mirror=follower, streaks=streaks))
            beside += notifying
            watcher = GangWatcher(
                client, own.tell if notifying else None, None if history is None else history.hear_bands
            )
            alerts = AlertWatch(follower, watcher.differing, partial(_own_signs, streaks, ends))
            runs = RunCounts()
            parts = ConsoleParts(follower, history, watcher, SharedFollows(client), alerts, client, runs, streaks, ends)
            hearing = [watcher.hear] if history is None else [watcher.hear, history.hear]
            beside += [follower.run, watcher.run, alerts.run, partial(follow_samples, client, hearing)]
            beside += [partial(follow_events, client, runs.hear)]
        beside += [history.run] if history is not None else []
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        app = application(callers, settings.hosts, seal, settings.origin, parts)
        listener = ConsoleListener(app, settings.listen, settings.cert, settings.key)
        running = [tasks.create_task(work(), name=repr(work)) for work in (systemd.keep_alive, *beside)]
        url = settings.url or f"{'http' if settings.cert is None else 'https'}://{listener.address}"
        systemd.ready(f"serves {url}")
        log.info("console serves", extra={"url": url, "coordinator": settings.coordinator})
        if settings.ready_file is not None:
            write_private(settings.ready_file, f"{url}\n".encode())
        await listener.run_until(stopped)
        systemd.stopping()
        for task in running:
            task.cancel()
    log.info("console stopped")


async def send_one_test(settings: ConsoleSettings) -> None:
    """Send a test to a subscription, and say how it went; raises MusterError where it was not taken."""
    assert settings.notify is not None, "the settings say so"
    answer = await send_test(read_notify_file(settings.notify), settings.notify_test, datetime.now(UTC))
    if not answer.taken:
        raise MusterError(f"the target of {settings.notify_test} has not taken the test: {answer.told}")
    sys.stdout.write(f"the target of {settings.notify_test} has taken the test: {answer.told}\n")


def _own_signs(streaks: DeliveryStreaks, certificate_ends: datetime | None) -> Iterator[AlertSign]:
    """What somebody should look at of this console itself."""
    yield from delivery_signs(streaks)
    yield from certificate_signs(certificate_ends, datetime.now(UTC))


def _notifying(
    settings: ConsoleSettings,
    callers: Callers,
    stack: AsyncExitStack,
    deliver: Callable[..., Coroutine[None, None, None]],
) -> Sequence[Work]:
    """What notifies, where there is a state to keep deliveries and a token to follow events; raises MusterError."""
    if settings.state is None or settings.token_file is None:
        return ()
    wanted = NotifySettings() if settings.notify is None else read_notify_file(settings.notify)
    token = read_secret(settings.token_file)
    try:
        outbox = stack.enter_context(held_outbox(settings.state))
    except ConflictError:
        if settings.notify is not None:
            raise
        log.info("another console delivers events, which uses the same state", extra={"state": str(settings.state)})
        return ()
    return (partial(deliver, wanted, outbox, lambda: callers.client(token)),)


def _history(settings: ConsoleSettings, stack: AsyncExitStack) -> HistoryRecorder | None:
    """The history, where the settings want it; raises MusterError."""
    if settings.token_file is None or settings.state is None or not settings.history_limit:
        return None
    return HistoryRecorder(stack.enter_context(held_history(settings.state, settings.history_limit << 30)))


def _authority(settings: ConsoleSettings) -> bytes | None:
    if settings.authority is None:
        return None
    try:
        return settings.authority.read_bytes()
    except OSError as error:
        raise MusterError(f"cannot read the authority {settings.authority}: {error.strerror}") from error
