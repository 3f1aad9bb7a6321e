"""The relay's composition root: the line to the coordinator, the server, and a clean end on SIGTERM or Ctrl-C."""

import asyncio
import faulthandler
import logging
import os
import resource
import secrets
import signal
import sys
from datetime import UTC, datetime

import grpc
import grpc.aio

from coordinator.relay.carrying import Carrier
from coordinator.relay.joining import JoinTable
from coordinator.relay.limits import RELAY_SERVER_OPTIONS
from coordinator.relay.messages import (
    RELAY_TALK,
    AttachmentClosed,
    AttachmentForgotten,
    AttachmentOpen,
    DeskMessage,
    RelayHello,
    RelayIdentity,
    RelayListed,
    RelayMessage,
    RelayServes,
    RelayWelcome,
)
from coordinator.relay.pace import RelayPace
from coordinator.relay.settings import RelaySettings, parse
from muster import __version__
from muster.daemon.companions.dialing import talk_for_ever
from muster.daemon.journal import configure
from muster.daemon.refusal import refusing
from muster.daemon.systemd import Systemd
from muster.rpc.companion import bound_companion, same_port
from muster.trust.files import write_private
from muster.trust.identity import Identity

log = logging.getLogger(__name__)

_STOP_GRACE = 1.0
"""Seconds in which streams that were told to end are ended."""

_TIDY_PAUSE = 30.0
"""Seconds between two looks at what can be forgotten."""

_NEWS_AT_ONCE = 500
"""Attachments in one report."""

_OTHER_FLEET = "another fleet has taken the place of the one that this attachment was of"


def main() -> None:
    """Entry point of `muster-relay`."""
    settings = parse(sys.argv[1:], os.environ)
    systemd = Systemd(os.environ)
    configure(settings.log_level, form=settings.log_format)
    faulthandler.enable()  # a loop that hangs is ended by SIGABRT, and the log says where it hung
    with refusing("muster-relay"):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        asyncio.run(Relay(settings, systemd).run())


class Relay:
    """One relay: what the coordinator has told it, and what it serves."""

    def __init__(self, settings: RelaySettings, systemd: Systemd) -> None:
        self._settings = settings
        self._systemd = systemd
        self._run = secrets.token_hex(8)
        self._table = JoinTable(settings.relay_streams)
        self._carrier = Carrier(self._table, RelayPace(settings.relay_rate), self._key, _now, self._stir)
        self._welcome: RelayWelcome | None = None
        self._shown: Identity | None = None
        """The certificate to serve with."""
        self._listed: set[str] | None = None
        """What the coordinator has listed as open so far, while it lists."""
        self._server: grpc.aio.Server | None = None
        self._news: list[RelayMessage] = []
        """What is to be told beside how attachments are."""
        self._listens = ""
        """Where it is served; empty: not yet."""
        self._stirred = asyncio.Event()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        stopped = asyncio.Event()
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(each, stopped.set)
        self._systemd.ready("waits for the coordinator")
        async with asyncio.TaskGroup() as tasks:
            going = (
                tasks.create_task(
                    talk_for_ever(self._settings.state, RELAY_TALK, self, self._stirred, self.hear), name="coordinator"
                ),
                tasks.create_task(self._systemd.keep_alive(), name="watchdog"),
                tasks.create_task(self._tidy(), name="what can be forgotten"),
            )
            await stopped.wait()
            self._systemd.stopping()
            self._carrier.stop()
            if self._server is not None:
                await self._server.stop(_STOP_GRACE)
            for task in going:
                task.cancel()
        log.info("relay stopped")

    def hello(self) -> RelayHello:
        """The first line on a new connection; everything else counts as not told yet."""
        self._table.tell_all()
        self._news = [RelayServes(listen=self._listens)] if self._listens else []
        return RelayHello(version=__version__, run=self._run)

    def take(self) -> list[RelayMessage]:
        """What is to be told now, or some of it."""
        told, self._news = self._news, []
        return [*told, *self._table.news(_NEWS_AT_ONCE)]

    async def hear(self, message: DeskMessage) -> None:
        """Take in what the coordinator says."""
        match message:
            case RelayWelcome():
                if self._welcome is not None and self._welcome.fleet != message.fleet:
                    self._carrier.end(self._table.close_all(_OTHER_FLEET, _now()))
                self._welcome, self._listed = message, set()
                self._shown = message.identity or self._shown
                if self._server is None:
                    await self._serve(message)
            case RelayIdentity(identity=identity):
                self._shown = identity
            case AttachmentOpen(attachment=attachment):
                self._table.open(attachment)
                if self._listed is not None:
                    self._listed.add(attachment)
            case RelayListed():
                if self._listed is not None:
                    self._table.list_open(self._listed)
                    self._listed = None
            case AttachmentClosed(attachment=attachment, why=why, lost=lost):
                self._carrier.end(self._table.close(attachment, why, _now(), lost=lost))

    async def _serve(self, welcome: RelayWelcome) -> None:
        """Begin to serve; raises MusterError where that cannot be."""
        listen = same_port(self._settings.listen_relay or welcome.listen, welcome.before)
        server = grpc.aio.server(options=RELAY_SERVER_OPTIONS)
        server.add_generic_rpc_handlers((self._carrier,))
        identity = None if welcome.identity is None else self._identity
        self._listens = bound_companion(server, listen, identity, "--listen-relay")
        await server.start()
        self._server = server
        self._news.append(RelayServes(listen=self._listens))
        self._stir()
        log.info("relay serves", extra={"address": self._listens})
        self._systemd.status(f"serves at {self._listens}")
        if self._settings.ready_file is not None:
            write_private(self._settings.ready_file, f"{self._listens}\n".encode())

    def _key(self) -> bytes:
        assert self._welcome is not None, "it serves only once it has been welcomed"
        return self._welcome.key

    def _identity(self) -> Identity:
        assert self._shown is not None, "it serves TLS only once it was given a certificate"
        return self._shown

    def _stir(self) -> None:
        self._stirred.set()

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(_TIDY_PAUSE)
            self._news.extend(AttachmentForgotten(attachment=each) for each in self._table.forget(_now()))
            if count := self._carrier.turned_away():
                log.warning("streams were turned away", extra={"count": count, "seconds": int(_TIDY_PAUSE)})


def _now() -> datetime:
    return datetime.now(UTC)
