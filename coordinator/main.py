"""The coordinator's composition root: settings, store, engine, server; and a clean end on SIGTERM or Ctrl-C."""

import asyncio
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coordinator.engine import Engine
from coordinator.rpc.server import Identity, serving
from coordinator.settings import CoordinatorSettings, parse
from coordinator.store.directory import StateDirectory
from coordinator.store.logs import LogStore
from coordinator.store.sql import SqlStore
from coordinator.store.store import StoreError
from muster.domain.errors import MusterError, first_of
from muster.domain.ids import JobId
from muster.journal import configure

log = logging.getLogger(__name__)


def main() -> None:
    """Entry point of `muster-coordinator`."""
    settings = parse(sys.argv[1:], os.environ)
    configure(settings.log_level)
    directory = StateDirectory(settings.state)
    try:
        with directory.lock():
            asyncio.run(run(settings, directory))
    except* MusterError as errors:
        sys.exit(f"muster-coordinator: {first_of(errors)}")


async def run(settings: CoordinatorSettings, directory: StateDirectory) -> None:
    """Serve until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    store, logs = SqlStore.open(directory.database), LogStore(directory.logs, limit=settings.log_limit << 20)
    with ThreadPoolExecutor(1, thread_name_prefix="log remover") as remover:

        def forget(job: JobId) -> None:
            remover.submit(_drop_logs, logs, job)

        try:
            await _serve(settings, Engine(store, forget, directory.fleet_key()), logs, stopped)
        finally:
            logs.close()
            store.close()


def _drop_logs(logs: LogStore, job: JobId) -> None:
    """What cannot be removed now goes at the next start."""
    try:
        logs.drop_job(job)
    except (StoreError, OSError) as error:
        log.warning("logs of a deleted job are still there", extra={"job": job, "cause": str(error)})


async def _serve(settings: CoordinatorSettings, engine: Engine, logs: LogStore, stopped: asyncio.Event) -> None:
    await asyncio.to_thread(logs.keep_only, engine.known_jobs())
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(engine.run(), name="engine")
        async with serving(
            engine, logs, settings.listen, identity=_identity(settings), insecure=settings.insecure
        ) as address:
            log.info("coordinator serves", extra={"address": address, "state": str(settings.state)})
            if settings.ready_file is not None:
                _announce(settings.ready_file, address)
            await _first(stopped, working, tasks)
        working.cancel()
    log.info("coordinator stopped")


async def _first(stopped: asyncio.Event, working: "asyncio.Task[None]", tasks: asyncio.TaskGroup) -> None:
    """Wait for the order to stop; an engine that fails ends the wait by ending the task group."""
    working.add_done_callback(lambda _: stopped.set())
    await tasks.create_task(stopped.wait(), name="stop")


def _identity(settings: CoordinatorSettings) -> Identity | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return Identity(cert=settings.tls_cert, key=settings.tls_key, client_ca=settings.tls_client_ca)


def _announce(ready_file: Path, address: str) -> None:
    """Whoever waits for the file must never read half an address."""
    fresh = ready_file.with_name(ready_file.name + ".new")
    fresh.write_text(f"{address}\n")
    fresh.replace(ready_file)
