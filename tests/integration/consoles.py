"""A real console in the process of the test, before a real coordinator, and HTTP clients of those who ask it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from console.alerts.alert_watch import AlertWatch
from console.alerts.certificate import certificate_end
from console.api.app import ConsoleParts, application
from console.api.listener import ConsoleListener
from console.api.sessions.session import SessionSeal
from console.mirror.follower import MirrorFollower
from console.settings import LOOPBACK_NAMES
from console.telemetry.gangs.watcher import GangWatcher
from console.telemetry.history.recorder import HistoryRecorder, held_history
from console.telemetry.runs.listener import follow_events
from console.telemetry.runs.run_counts import RunCounts
from console.telemetry.sample_follower import follow_samples
from console.upstream.callers import Callers
from console.watched.follows import SharedFollows
from coordinator.clock import wall_time
from muster.trust.certificates import issue_server, make_authority
from muster.trust.sealing import new_sealing_key

ANSWERED_WITHIN = 30.0
HISTORY_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True)
class ServedConsole:
    """A console that serves."""

    url: str
    authority: Path | None
    """The authority that its callers believe; None: it speaks plain HTTP."""
    follows: SharedFollows | None
    """What it follows for its callers; None: it has no token of its own."""

    def http(self, token: str | None = None) -> httpx.AsyncClient:
        """Whoever has that token; None: nobody has given one."""
        shown = {} if token is None else {"Authorization": f"Bearer {token}"}
        trusts = True if self.authority is None else ssl.create_default_context(cafile=self.authority)
        return httpx.AsyncClient(base_url=self.url, headers=shown, timeout=ANSWERED_WITHIN, verify=trusts)

    @property
    def port(self) -> int:
        """Where it is served, on loopback."""
        return int(self.url.rpartition(":")[2])


def certified(directory: Path) -> dict[str, Path]:
    """Files for a console that speaks TLS on loopback: its `cert` and `key`, and the `authority` to believe."""
    authority = make_authority(wall_time())
    shown = issue_server(authority, ["127.0.0.1"], wall_time())
    content = {"authority": authority.certificate, "cert": shown.certificate, "key": shown.key}
    files = {name: directory / name for name in content}
    for name, file in files.items():
        file.write_bytes(content[name])
    return files


@asynccontextmanager
async def console(  # noqa: PLR0913 - one for each thing that a console can have
    coordinator: str,
    authority: bytes | None = None,
    *,
    cert: Path | None = None,
    key: Path | None = None,
    believed: Path | None = None,
    token: str | None = None,
    state: Path | None = None,
    origin: str = "",
) -> AsyncIterator[ServedConsole]:
    """Serve until the context ends, before the coordinator at an address of which this authority has signed.

    With a `token` of its own it keeps a mirror, and serves once that has all that there is. With a `state` it keeps
    history there, and watches gangs.
    """
    async with AsyncExitStack() as stack:
        callers = await stack.enter_async_context(Callers(coordinator, authority))
        own = None if token is None else await callers.client(token)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        follower = None if own is None else MirrorFollower(own)
        follows = None if own is None else SharedFollows(own)
        following = None if follower is None else tasks.create_task(follower.run(), name="mirror")
        if follower is not None:
            assert await follower.has_reached(0, ANSWERED_WITHIN), "the console has a mirror"
        history = watcher = None
        beside = list[asyncio.Task[None]]()
        if token is not None and state is not None:
            client = await callers.client(token)
            history = HistoryRecorder(stack.enter_context(held_history(state, HISTORY_BYTES)))
            watcher = GangWatcher(client, keep=history.hear_bands)
            works = (follow_samples(client, [history.hear, watcher.hear]), history.run(), watcher.run())
            beside = [tasks.create_task(work, name="part of a console") for work in works]
        alerts = runs = None
        if token is not None:
            runs = RunCounts()
            counting = follow_events(await callers.client(token), runs.hear)
            beside.append(tasks.create_task(counting, name="counts of runs"))
        if follower is not None:
            alerts = AlertWatch(follower, watcher.differing if watcher is not None else lambda: ())
            beside.append(tasks.create_task(alerts.run(), name="alerts"))
        seal = SessionSeal(new_sealing_key())
        parts = ConsoleParts(
            follower, history, watcher, follows, alerts, own, runs, certificate_ends=certificate_end(cert)
        )
        app = application(callers, LOOPBACK_NAMES, seal, origin, parts)
        listener = ConsoleListener(app, "127.0.0.1:0", cert, key)
        stopped = asyncio.Event()
        serving = tasks.create_task(listener.run_until(stopped), name="console")
        scheme = "http" if cert is None else "https"
        try:
            yield ServedConsole(url=f"{scheme}://{listener.address}", authority=believed, follows=follows)
        finally:
            stopped.set()
            await serving
            for task in (following, *beside):
                if task is not None:
                    task.cancel()
