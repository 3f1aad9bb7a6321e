"""The console's composition root: the connection to the coordinator, the server, and a clean end."""

import asyncio
import faulthandler
import logging
import os
import signal
import sys

from console.api.app import application
from console.api.listener import ConsoleListener
from console.settings import ConsoleSettings, parse
from console.upstream.callers import Callers
from muster.daemon.journal import configure
from muster.daemon.refusal import refusing
from muster.daemon.systemd import Systemd
from muster.domain.errors import MusterError
from muster.trust.files import write_private

log = logging.getLogger(__name__)


def main() -> None:
    """Entry point of `muster-console`."""
    settings = parse(sys.argv[1:], os.environ)
    os.environ.pop("MUSTER_PROJECT", None)  # jobs are in the project that their callers say
    systemd = Systemd(os.environ)
    configure(settings.log_level, form=settings.log_format)
    faulthandler.enable()  # a loop that hangs is ended by SIGABRT, and the log says where it hung
    with refusing("muster-console"):
        asyncio.run(run(settings, systemd))


async def run(settings: ConsoleSettings, systemd: Systemd) -> None:
    """Serve until SIGTERM or SIGINT; raises MusterError where that cannot be."""
    stopped = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    async with Callers(settings.coordinator, _authority(settings)) as callers, asyncio.TaskGroup() as tasks:
        listener = ConsoleListener(application(callers, settings.hosts), settings.listen, settings.cert, settings.key)
        alive = tasks.create_task(systemd.keep_alive(), name="watchdog")
        url = settings.url or f"{'http' if settings.cert is None else 'https'}://{listener.address}"
        systemd.ready(f"serves {url}")
        log.info("console serves", extra={"url": url, "coordinator": settings.coordinator})
        if settings.ready_file is not None:
            write_private(settings.ready_file, f"{url}\n".encode())
        await listener.run_until(stopped)
        systemd.stopping()
        alive.cancel()
    log.info("console stopped")


def _authority(settings: ConsoleSettings) -> bytes | None:
    if settings.authority is None:
        return None
    try:
        return settings.authority.read_bytes()
    except OSError as error:
        raise MusterError(f"cannot read the authority {settings.authority}: {error.strerror}") from error
