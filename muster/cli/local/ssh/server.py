"""The SSH server itself: for each channel that `ssh` opens, one attachment."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeAlias

import asyncssh

from muster.cli.local.ssh.carrying import carried
from muster.cli.local.ssh.requests import (
    NOT_CARRIED_CODE,
    connection_request,
    exit_code,
    last_words,
)
from muster.cli.local.ssh.sessions import SSH_WINDOW, CommandSession, ConnectionSession, SessionChannel
from muster.client.attachments.stream import AttachmentStream
from muster.domain.attachments.frame import AttachmentEnded
from muster.domain.attachments.request import AttachmentRequest, ConnectionRequest
from muster.domain.errors import MusterError
from muster.domain.visible_text import visible

# What goes wrong is told to the client; asyncssh would print it, too.
logging.getLogger("asyncssh").addHandler(logging.NullHandler())
logging.getLogger("asyncssh").propagate = False

OpenAttachment: TypeAlias = Callable[[AttachmentRequest], Awaitable[AttachmentStream]]
"""Opens an attachment to the execution that is served; raises MusterError."""

SERVER_VERSION = "OpenSSH_compatible_Muster"
"""OpenSSH tells only servers of such a name that nobody reads the output of a command any more."""

CONNECTION_DRAIN = 10.0
"""Seconds in which the execution still takes what a connection has sent before it was closed."""

_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "chacha20-poly1305@openssh.com")
_KEY_EXCHANGES = ("curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256")


async def serve_ssh(
    line: socket.socket, host_key: bytes, open_attachment: OpenAttachment, say: Callable[[str], None]
) -> None:
    """Serve one SSH client at the other end of a socket until it goes; then all its attachments are closed.

    `host_key` is a private key in the form of OpenSSH. `say` is told what SSH has no words for.
    """
    async with asyncio.TaskGroup() as tasks:
        server = ExecutionServer(tasks, open_attachment, say)
        connection = await asyncssh.run_server(
            line,
            server_factory=lambda: server,
            server_host_keys=[asyncssh.import_private_key(host_key)],
            server_version=SERVER_VERSION,
            encryption_algs=_CIPHERS,
            kex_algs=_KEY_EXCHANGES,
            compression_algs=("none",),
            gss_host=None,
            agent_forwarding=False,
            x11_forwarding=False,
            line_editor=False,
            encoding=None,
            tcp_keepalive=False,
            login_timeout=0,  # somebody may be asked about the key of this server, and takes their time
        )
        try:
            await connection.wait_closed()
            await server.drain()
        finally:
            connection.abort()
            server.cancel()


class ExecutionServer(asyncssh.SSHServer):
    """What asyncssh asks about one client."""

    def __init__(self, tasks: asyncio.TaskGroup, open_attachment: OpenAttachment, say: Callable[[str], None]) -> None:
        self._tasks = tasks
        self._open_attachment = open_attachment
        self._say = say
        self._connections: list[asyncssh.SSHServerConnection] = []
        self._carrying: set[asyncio.Task[None]] = set()
        self._draining: set[asyncio.Task[None]] = set()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Take the one connection that there is."""
        self._connections.append(conn)

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002 - whatever user is named
        """Whether the client has to prove anything: it is a process of the user who started this one."""
        return False

    def session_requested(self) -> tuple[SessionChannel, CommandSession]:
        """A session."""
        channel = SessionChannel(self._connections[0])
        return channel, CommandSession(channel, self._begin)

    def connection_requested(
        self,
        dest_host: str,
        dest_port: int,
        orig_host: str,  # noqa: ARG002 - whoever in this machine connects
        orig_port: int,  # noqa: ARG002 - whoever in this machine connects
    ) -> "tuple[asyncssh.SSHTCPChannel[bytes], Coroutine[None, None, ConnectionSession]]":
        """A connection of `-L` or `-D`, once it is there; raises ChannelOpenError."""
        request = connection_request(dest_host, dest_port)
        if request is None:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_CONNECT_FAILED, f"there is no address {dest_host}:{dest_port}"
            )
        channel = self._connections[0].create_tcp_channel(window=SSH_WINDOW)
        return channel, self._connected(request, ConnectionSession(channel))

    def unix_connection_requested(self, dest_path: str) -> bool:
        """Refuse a connection to a socket in the file system."""
        refusal = f"sockets in the file system are not carried ({dest_path}); use a port, as in -L 8080:localhost:8080"
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, refusal)

    def server_requested(self, listen_host: str, listen_port: int) -> bool:  # noqa: ARG002 - the port names it
        """Refuse a port there that leads to the user's machine."""
        self._refuse_remote_forward(f"port {listen_port}")
        return False

    def unix_server_requested(self, listen_path: str) -> bool:
        """Refuse a socket there that leads to the user's machine."""
        self._refuse_remote_forward(listen_path)
        return False

    async def drain(self) -> None:
        """Wait until the execution has taken what connections had sent before they were closed."""
        if self._draining:
            await asyncio.wait(self._draining, timeout=CONNECTION_DRAIN)

    def cancel(self) -> None:
        """Close all attachments that are still open."""
        for task in self._carrying:
            task.cancel()

    def _refuse_remote_forward(self, what: str) -> None:
        self._say(
            f"-R is not served: no {what} of an execution can lead to this machine. Ports of the execution come here "
            "with -L or -D"
        )

    def _begin(self, session: CommandSession) -> None:
        if session.left_out:
            names = ", ".join(session.left_out[:5])
            self._say(f"{len(session.left_out)} variables of ssh (SendEnv, SetEnv) were not sent on: {names}")
        self._spawn(self._carry_session(session), "a session of SSH")

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        task = self._tasks.create_task(work, name=name)
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    def _note_draining(self) -> None:
        """Have `drain` wait for the task that asks."""
        task = asyncio.current_task()
        if task in self._carrying:
            self._draining.add(task)
            task.add_done_callback(self._draining.discard)

    async def _carry_session(self, session: CommandSession) -> None:
        try:
            stream = await self._open_attachment(session.request)
        except (MusterError, OSError) as error:
            session.ends(NOT_CARRIED_CODE, visible(f"muster: {error}"))
            return
        ended = await carried(stream, session.inflow, session, session.gone)
        if ended is None:
            session.ends(NOT_CARRIED_CODE, "")
        else:
            session.ends(exit_code(ended), visible(last_words(ended)))

    async def _connected(self, request: ConnectionRequest, session: ConnectionSession) -> ConnectionSession:
        """The session, once the connection is there; raises ChannelOpenError."""
        reached: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._spawn(self._carry_connection(request, session, reached), f"connection to port {request.port}")
        refusal = await reached
        if refusal:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, visible(refusal))
        return session

    async def _carry_connection(
        self, request: ConnectionRequest, session: ConnectionSession, reached: "asyncio.Future[str]"
    ) -> None:
        refusal = "ssh has gone"
        try:
            stream = await self._open_attachment(request)
            try:
                first = await stream.receive()
                if isinstance(first, AttachmentEnded):
                    refusal = first.text or f"nothing answers at {request.host}:{request.port}"
                    return
                reached.set_result("")
                await session.open.wait()
                self._note_draining()
                await carried(stream, session.inflow, session, session.gone, drain=CONNECTION_DRAIN)
                session.ends()
            finally:
                await stream.close()
        except (MusterError, OSError) as error:
            refusal = str(error)
        finally:
            if not reached.done():
                reached.set_result(refusal)
