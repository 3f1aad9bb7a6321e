"""The coordinator's composition root: settings, store, engine, server; and a clean end on SIGTERM or Ctrl-C."""

import asyncio
import faulthandler
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator.clock import wall_time
from coordinator.commands import is_command, run_command
from coordinator.companions.depot_desk import DepotDesk
from coordinator.companions.relay_desk import RelayDesk
from coordinator.companions.socket import serving_companion
from coordinator.core.events import FleetChanged
from coordinator.depot.messages import DEPOT_DESK_TALK
from coordinator.engine.engine import Engine
from coordinator.first_start import local_token, opened_secrets, prepared, renew_server
from coordinator.fleet.files import FleetFiles
from coordinator.fleet.put_aside import put_aside
from coordinator.logins.settings import LoginSettings
from coordinator.relay.messages import RELAY_DESK_TALK
from coordinator.rpc.journal_pace import PacedLines
from coordinator.rpc.server import Doors, serving, serving_locally
from coordinator.rpc.services import Parts
from coordinator.service.archive import StoredPast
from coordinator.service.attaching.attachment_limits import AttachmentLimits
from coordinator.service.attaching.open_book import AttachmentBook
from coordinator.service.data.naming import DepotBook, naming_trees
from coordinator.service.known_projects import KnownProjects, make_default_project
from coordinator.service.trust.rotations import Rotations
from coordinator.service.trust.sessions import ConsoleKnown
from coordinator.settings import CoordinatorSettings, parse
from coordinator.store.bundles import BundleStore
from coordinator.store.directory import StateDirectory
from coordinator.store.logs.logs import LOGS_LEAVE_FREE, LogStore
from coordinator.store.logs.quota import LogLimits, LogQuota
from coordinator.store.quick_check import CHECKED_FIRST, found_damage, require_whole
from coordinator.store.records.reserve import ReservingStore
from coordinator.store.records.sql import SqlStore
from coordinator.store.store import StoreError
from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.audit.exports.audit_file import AuditFile
from coordinator.trust.audit.exports.audit_syslog import AuditSyslog
from coordinator.trust.audit.exports.exporter import Exporter
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.audit.retention import prune_seldom
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.policies import Policies
from coordinator.trust.presets import Presets
from coordinator.trust.registry import Registry
from coordinator.trust.subscriptions import Subscriptions
from coordinator.trust.token_uses import write_seldom
from coordinator.tuning import garbage
from muster import __version__
from muster.daemon.journal import configure
from muster.daemon.refusal import refusing
from muster.daemon.systemd import Systemd
from muster.domain.event import FleetEventKind
from muster.domain.fleet.access import EVERYWHERE
from muster.domain.ids import JobId
from muster.jobfile.policies import load_policy_rules
from muster.lean import heap

if TYPE_CHECKING:
    from coordinator.logins.desk import LoginDesk

log = logging.getLogger(__name__)


def main() -> None:
    """Entry point of `muster-coordinator`."""
    if is_command(sys.argv[1:]):
        sys.exit(run_command(sys.argv[1:], os.environ))
    settings = parse(sys.argv[1:], os.environ)
    systemd = Systemd(os.environ)
    journal = PacedLines()
    configure(settings.log_level, journal, form=settings.log_format)
    faulthandler.enable()  # a loop that hangs is ended by SIGABRT, and the log says where it hung
    directory = StateDirectory(settings.state)
    heap.keep_together()
    os.umask(0o077)
    with refusing("muster-coordinator"):
        _allow_connections()
        with directory.lock(), asyncio.Runner() as runner:
            fleet = FleetFiles(directory)
            fleet.allow_start(wall_time())
            runner.run(run(settings, directory, fleet, systemd, journal))


def _allow_connections() -> None:
    """Take as many as the administrator allows; services begin with 1,024 files, and each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def run(
    settings: CoordinatorSettings, directory: StateDirectory, fleet: FleetFiles, systemd: Systemd, journal: PacedLines
) -> None:
    """Serve until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    store = ReservingStore(SqlStore.open(directory.database), directory.reserve)
    require_whole(directory.database)
    logs = LogStore(directory.logs, limit=settings.log_limit << 20, left_free=LOGS_LEAVE_FREE)
    quota = LogQuota(LogLimits(project=settings.log_quota_project << 20, total=settings.log_quota << 20))
    trust = SqlTrust.open(directory.database)
    with ThreadPoolExecutor(1, thread_name_prefix="log remover") as remover:

        def forget(job: JobId) -> None:
            quota.drop(job)
            remover.submit(_drop_logs, logs, job)

        try:
            with garbage.not_looked_for():
                engine = Engine(store, forget, directory.fleet_key())
                registry = Registry(trust, KnownProjects(engine))
            secrets = opened_secrets(settings, trust, registry.projects)
            logins = None if settings.login is None else _login_desk(settings.login, registry)
            audit = AuditLog(registry)
            directory.running.touch()
            authority = None if settings.local else await prepared(settings, registry)
            await asyncio.to_thread(fleet.have_begun, authority=authority is not None)
            relay = _relay_desk(settings, directory, fleet, authority)
            depot = _depot_desk(settings, directory, authority)
            depot.names.on_swept = DepotBook(engine, depot).swept
            policies = Policies(trust, registry.projects)
            if policies:
                await asyncio.to_thread(load_policy_rules)
            parts = Parts(
                engine=engine,
                fleet=fleet.id,
                store=store,
                logs=logs,
                registry=registry,
                audit=audit,
                secrets=secrets,
                subscriptions=Subscriptions(trust, secrets, registry.projects),
                policies=policies,
                presets=Presets(trust, registry.projects),
                log_quota=quota if quota.limited else None,
                bundles=BundleStore(directory.bundles, signers=settings.bundle_signers),
                logins=logins,
                console=ConsoleKnown(url=settings.console_url),
                relay=relay,
                depot=depot,
                attachments=AttachmentBook(AttachmentLimits(account=settings.attachments_per_account)),
            )
            if not settings.init:
                await asyncio.to_thread(_put_unknown_logs_aside, directory, parts)
                if quota.limited:
                    await asyncio.to_thread(quota.count, directory.logs, engine.projects_of_jobs())
                async with (
                    serving_companion(relay, RELAY_DESK_TALK, directory.path),
                    serving_companion(depot, DEPOT_DESK_TALK, directory.path),
                    naming_trees(engine, depot.names, StoredPast(store)),
                ):
                    await _serve(settings, parts, authority, stopped, systemd, journal)
        finally:
            directory.running.unlink(missing_ok=True)  # before the database is closed, which deletes its `-wal`
            logs.close()
            trust.close()
            store.close()


async def _look_at_large_database(state: Path) -> None:
    """Say what is wrong with a database that is too large to be looked at before it is served."""
    database, unwanted = StateDirectory(state).database, threading.Event()
    if (await asyncio.to_thread(database.stat)).st_size > CHECKED_FIRST:
        try:
            found = await asyncio.to_thread(found_damage, database, unwanted.is_set)
        finally:
            unwanted.set()
        for text in found:
            log.error("the database is damaged; restore a backup", extra={"damage": text})


def _login_desk(settings: LoginSettings, registry: Registry) -> "LoginDesk":
    from coordinator.logins.desk import LoginDesk  # noqa: PLC0415 - it loads a library for HTTP
    from coordinator.logins.provider import Provider  # noqa: PLC0415 - as above

    desk = LoginDesk(Provider(settings))
    log.info("people log in through an identity provider", extra={"issuer": settings.issuer})
    for project in sorted({rule.project for rule in settings.grants} - {EVERYWHERE, *registry.projects}):
        log.warning("groups are granted access to a project that is not there yet", extra={"project": project})
    return desk


def _relay_desk(
    settings: CoordinatorSettings, directory: StateDirectory, fleet: FleetFiles, authority: FleetAuthority | None
) -> RelayDesk:
    if authority is None:
        return RelayDesk(directory.ticket_secret(), fleet.id, settings.listen, None)
    desk = RelayDesk(directory.ticket_secret(), fleet.id, settings.listen, lambda: authority.server)
    authority.on_change.append(desk.look_again)
    return desk


def _depot_desk(
    settings: CoordinatorSettings, directory: StateDirectory, authority: FleetAuthority | None
) -> DepotDesk:
    if authority is None:
        return DepotDesk(directory.ticket_secret(), settings.listen, None, directory.depot_known)
    desk = DepotDesk(directory.ticket_secret(), settings.listen, lambda: authority.server, directory.depot_known)
    authority.on_change.append(desk.look_again)
    return desk


def _drop_logs(logs: LogStore, job: JobId) -> None:
    """What cannot be removed now goes at the next start."""
    try:
        logs.drop_job(job)
    except (StoreError, OSError) as error:
        log.warning("logs of a deleted job are still there", extra={"job": job, "cause": str(error)})


def _put_unknown_logs_aside(directory: StateDirectory, parts: Parts) -> None:
    """Keep logs of jobs that the database does not know, as after a restore, where nobody takes them for others."""
    try:
        put_aside(directory.path, parts.logs.unknown(parts.engine.known_jobs()), wall_time())
    except OSError as error:
        log.warning("logs of unknown jobs are still among the others", extra={"cause": str(error)})


async def _serve(
    settings: CoordinatorSettings,
    parts: Parts,
    authority: FleetAuthority | None,
    stopped: asyncio.Event,
    systemd: Systemd,
    journal: PacedLines,
) -> None:
    garbage.collect_seldom()
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(parts.engine.run(), name="engine")
        auditing = tasks.create_task(parts.audit.run(), name="audit log")
        alive = tasks.create_task(systemd.keep_alive(), name="watchdog")
        tidying = tasks.create_task(garbage.tidy(), name="garbage")
        handing_on = tasks.create_task(_audit_beside(settings, parts.registry), name="audit log's exports and end")
        looking = tasks.create_task(_look_at_large_database(settings.state), name="look at the database")
        using = tasks.create_task(write_seldom(parts.registry.keep_uses), name="uses of tokens")
        telling = tasks.create_task(journal.tell_seldom(), name="lines that were left out")
        await make_default_project(parts.engine)
        await parts.engine.post(FleetChanged(kind=FleetEventKind.COORDINATOR_STARTED, text=f"version {__version__}"))
        async with _door(settings, parts, authority, tasks) as address:
            log.info("coordinator serves", extra={"address": address, "state": str(settings.state)})
            systemd.ready(f"serves clients at {address}")
            if settings.ready_file is not None:
                _announce(settings.ready_file, address)
            await _first(stopped, working, tasks)
            systemd.stopping()
        looking.cancel()
        alive.cancel()
        tidying.cancel()
        using.cancel()
        telling.cancel()
        handing_on.cancel()
        working.cancel()
        auditing.cancel()
    await parts.audit.flush()
    parts.audit.report_unwritten()
    with suppress(StoreError):  # nobody is misled by an older use
        await parts.registry.keep_uses()
    journal.tell()
    log.info("coordinator stopped")


async def _audit_beside(settings: CoordinatorSettings, registry: Registry) -> None:
    """Hand the audit log on to whom the settings name, and remove what is old, until cancelled."""
    exports = []
    if settings.audit_file is not None:
        exports.append(Exporter(registry, AuditFile(settings.audit_file), settings.state / "audit-file.json"))
    if settings.audit_syslog is not None:
        exports.append(Exporter(registry, AuditSyslog(settings.audit_syslog), settings.state / "audit-syslog.json"))
    async with asyncio.TaskGroup() as tasks:
        for each in exports:
            tasks.create_task(each.run(), name="audit log's export")
        if settings.audit_keep is not None:
            keep = timedelta(days=settings.audit_keep)
            tasks.create_task(prune_seldom(registry, keep, exports, wall_time), name="old entries of the audit log")


@asynccontextmanager
async def _door(
    settings: CoordinatorSettings, parts: Parts, authority: FleetAuthority | None, tasks: asyncio.TaskGroup
) -> AsyncIterator[str]:
    """The address for clients, while it is served."""
    if authority is None:
        async with serving_locally(parts, settings.listen, local_token(settings.state)) as address:
            yield address
        return
    renewing = tasks.create_task(renew_server(authority), name="server certificate")
    rotations = Rotations(authority, parts.registry.joined, parts.engine)
    rotating = tasks.create_task(rotations.watch(), name="change of the authority")
    doors = Doors(clients=settings.listen, agents=settings.listen_agents)
    async with serving(parts, doors, authority) as bound:
        log.info("agents are served", extra={"address": bound.agents})
        yield bound.clients
    renewing.cancel()
    rotating.cancel()


async def _first(stopped: asyncio.Event, working: "asyncio.Task[None]", tasks: asyncio.TaskGroup) -> None:
    """Wait for the order to stop; an engine that fails ends the wait by ending the task group."""
    working.add_done_callback(lambda _: stopped.set())
    await tasks.create_task(stopped.wait(), name="stop")


def _announce(ready_file: Path, address: str) -> None:
    """Whoever waits for the file must never read half an address."""
    fresh = ready_file.with_name(ready_file.name + ".new")
    fresh.write_text(f"{address}\n")
    fresh.replace(ready_file)
