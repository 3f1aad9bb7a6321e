"""The depot's composition root: the line to the coordinator, the server, and a clean end on SIGTERM or Ctrl-C."""

import asyncio
import faulthandler
import logging
import os
import resource
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import grpc
import grpc.aio

from coordinator.depot.limits import DEPOT_SERVER_OPTIONS
from coordinator.depot.messages import (
    DEPOT_TALK,
    DepotDeskMessage,
    DepotHello,
    DepotIdentity,
    DepotKeep,
    DepotMessage,
    DepotNames,
    DepotNamesEnd,
    DepotServes,
    DepotWelcome,
)
from coordinator.depot.service import DepotService
from coordinator.depot.settings import DepotSettings, parse
from coordinator.depot.sweeper import Sweeper
from muster import __version__
from muster.daemon.companions.dialing import talk_for_ever
from muster.daemon.journal import configure
from muster.daemon.refusal import refusing
from muster.daemon.systemd import Systemd
from muster.domain.errors import MusterError
from muster.rpc.companion import bound_companion, same_port
from muster.rpc.v1.depot_pb2_grpc import add_DepotServiceServicer_to_server
from muster.trust.files import write_private
from muster.trust.identity import Identity

log = logging.getLogger(__name__)

_STOP_GRACE = 1.0
"""Seconds in which calls are ended; who sends goes on from what has arrived."""

_TIDY_PAUSE = 30.0
"""Seconds between two looks at what can be forgotten."""


def main() -> None:
    """Entry point of `muster-depot`."""
    settings = parse(sys.argv[1:], os.environ)
    systemd = Systemd(os.environ)
    configure(settings.log_level, form=settings.log_format)
    faulthandler.enable()  # a loop that hangs is ended by SIGABRT, and the log says where it hung
    os.umask(0o077)
    with refusing("muster-depot"):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        asyncio.run(Depot(settings, systemd).run())


class Depot:
    """One depot: what the coordinator has told it, and what it serves."""

    def __init__(self, settings: DepotSettings, systemd: Systemd) -> None:
        """Raises MusterError where its directory cannot be made."""
        self._settings = settings
        self._systemd = systemd
        self._welcome: DepotWelcome | None = None
        self._shown: Identity | None = None
        """The certificate to serve with."""
        try:
            self._service = DepotService(settings.depot_dir, self._key, _now)
        except OSError as error:
            raise MusterError(
                f"cannot use {settings.depot_dir} for objects: {error.strerror}; name another one with --depot-dir"
            ) from error
        served = self._service
        self._sweeper = Sweeper(served.objects, served.hands, served.projects, served.kept, _now)
        self._beside = asyncio.TaskGroup()
        """What goes on while the coordinator says further things."""
        self._sweeping: asyncio.Task[None] | None = None
        """Looks for what no job names, as the coordinator says that came last."""
        self._server: grpc.aio.Server | None = None
        self._listens = ""
        """Where it is served; empty: not yet."""
        self._news: list[DepotMessage] = []
        self._stirred = asyncio.Event()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        stopped = asyncio.Event()
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(each, stopped.set)
        self._systemd.ready("waits for the coordinator")
        talking = talk_for_ever(self._settings.state, DEPOT_TALK, self, self._stirred, self.hear)
        async with self._beside as tasks:
            going = (
                tasks.create_task(talking, name="coordinator"),
                tasks.create_task(self._systemd.keep_alive(), name="watchdog"),
                tasks.create_task(self._tidy(), name="what can be forgotten"),
            )
            await stopped.wait()
            self._systemd.stopping()
            if self._server is not None:
                await self._server.stop(_STOP_GRACE)
            if self._sweeping is not None:
                self._sweeping.cancel()
            for task in going:
                task.cancel()
        log.info("depot stopped")

    def hello(self) -> DepotHello:
        """The first line on a new connection; everything else counts as not told yet."""
        self._news = [DepotServes(listen=self._listens)] if self._listens else []
        return DepotHello(version=__version__)

    def take(self) -> list[DepotMessage]:
        """What is to be told now."""
        told, self._news = self._news, []
        return told

    async def hear(self, message: DepotDeskMessage) -> None:
        """Take in what the coordinator says."""
        match message:
            case DepotWelcome():
                self._welcome = message
                self._shown = message.identity or self._shown
                if self._server is None:
                    await self._serve(message)
                if self._sweeping is not None:  # a coordinator that comes anew may know other jobs
                    self._sweeping.cancel()
                self._sweeping = self._beside.create_task(self._sweeper.run(self._tell), name="sweep")
            case DepotIdentity(identity=identity):
                self._shown = identity
            case DepotNames() | DepotNamesEnd():
                self._sweeper.hear(message)
            case DepotKeep():
                self._beside.create_task(self._keep(message), name="keep trees")

    async def _keep(self, message: DepotKeep) -> None:
        self._tell([await self._sweeper.keep(message)])

    def _tell(self, messages: Sequence[DepotMessage]) -> None:
        self._news += messages
        self._stirred.set()

    async def _serve(self, welcome: DepotWelcome) -> None:
        """Begin to serve; raises MusterError where that cannot be."""
        listen = same_port(self._settings.listen_depot or welcome.listen, welcome.before)
        server = grpc.aio.server(options=DEPOT_SERVER_OPTIONS)
        add_DepotServiceServicer_to_server(self._service, server)
        identity = None if welcome.identity is None else self._identity
        self._listens = bound_companion(server, listen, identity, "--listen-depot")
        await server.start()
        self._server = server
        self._news.append(DepotServes(listen=self._listens))
        self._stirred.set()
        log.info("depot serves", extra={"address": self._listens})
        self._systemd.status(f"serves at {self._listens}")
        if self._settings.ready_file is not None:
            write_private(self._settings.ready_file, f"{self._listens}\n".encode())

    def _key(self) -> bytes:
        assert self._welcome is not None, "it serves only once it has been welcomed"
        return self._welcome.key

    def _identity(self) -> Identity:
        assert self._shown is not None, "it serves TLS only once it was given a certificate"
        return self._shown

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(_TIDY_PAUSE)
            self._service.tidy()


def _now() -> datetime:
    return datetime.now(UTC)
