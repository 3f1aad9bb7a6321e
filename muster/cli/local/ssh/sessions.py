"""SSH channels as asyncssh has them: sessions for commands, terminals and files, and connections of `-L` and `-D`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from signal import SIGPIPE

import asyncssh

from muster.cli.local.ssh.inflow import Inflow
from muster.cli.local.ssh.requests import AskedTerminal, command_request, signal_number, terminal_size
from muster.domain.attachments.frame import AttachmentInput, AttachmentInputEnd, AttachmentSignal, AttachmentSize
from muster.domain.attachments.request import CommandRequest, FilesRequest

SSH_WINDOW = 1024 * 1024
"""Bytes that a client may send on a channel before any of them is taken."""

MOST_UNREAD = 4 * 1024 * 1024
"""Bytes that still come after SIGPIPE, most of which were under way; then a command that does not mind is hung up."""

_PACKET = 32 * 1024


class SessionChannel(asyncssh.SSHServerChannel[bytes]):
    """A session whose client may say that it does not read any more, as in `ssh muster-dev yes | head`."""

    def __init__(self, connection: asyncssh.SSHServerConnection) -> None:
        super().__init__(
            connection,
            asyncio.get_running_loop(),
            allow_pty=True,
            line_editor=False,
            line_echo=False,
            line_history=0,
            max_line_length=0,
            encoding=None,
            errors="strict",
            window=SSH_WINDOW,
            max_pktsize=_PACKET,
        )
        self.on_unread: Callable[[], None] = lambda: None
        """Called when the client has said so."""

    def _process_eow_at_openssh_dot_com_request(self, packet: asyncssh.packet.SSHPacket) -> bool:
        """Take the request, which asyncssh looks for under this name."""
        packet.check_end()
        self.on_unread()
        return True


class ChannelSide:
    """The client's side of a channel: what it sends, whether it takes more, and whether it has gone."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes] | asyncssh.SSHTCPChannel[bytes]) -> None:
        self.inflow = Inflow(channel.pause_reading, channel.resume_reading)
        self.gone = asyncio.Event()
        self._channel = channel
        self._room = asyncio.Event()
        self._room.set()

    def data_received(self, data: bytes, datatype: int | None) -> None:  # noqa: ARG002 - a client sends one kind only
        """Take data from the client."""
        self.inflow.put(AttachmentInput(data=data))

    def eof_received(self) -> bool:
        """Take the end of the input; the other direction goes on."""
        self.inflow.put(AttachmentInputEnd())
        return True

    def pause_writing(self) -> None:
        """Have output wait."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Have output go on."""
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - either way it is gone
        """Take the end of the channel."""
        self.inflow.end()
        self.gone.set()
        self._room.set()

    async def room(self) -> None:
        """Wait until the client takes more."""
        await self._room.wait()

    def output(self, data: bytes) -> None:
        """Send output."""
        if not self._channel.is_closing():
            self._channel.write(data)

    def error_output(self, data: bytes) -> None:
        """Send error output, which only a session has."""
        self.output(data)

    def output_end(self) -> None:
        """Say that no more output comes."""
        if not self._channel.is_closing():
            self._channel.write_eof()


class CommandSession(ChannelSide, asyncssh.SSHServerSession[bytes]):
    """A command, a shell, or files."""

    def __init__(self, channel: SessionChannel, begin: "Callable[[CommandSession], None]") -> None:
        """`begin` is called once it is known what is wanted."""
        super().__init__(channel)
        self.request: CommandRequest | FilesRequest = FilesRequest()
        self.left_out: Sequence[str] = ()
        """Variables that the command does not get."""
        self._session = channel
        self._begin = begin
        self._terminal: AskedTerminal | None = None
        self._unread: int | None = None
        channel.on_unread = self._nobody_reads

    def pty_requested(
        self,
        term_type: str,
        term_size: tuple[int, int, int, int],
        term_modes: Mapping[int, int],  # noqa: ARG002 - a terminal of Linux begins with the usual modes
    ) -> bool:
        """Note that a terminal is wanted."""
        self._terminal = AskedTerminal(term=term_type, size=terminal_size(*term_size[:2]))
        return True

    def exec_requested(self, command: str) -> bool:
        """Note the command that is wanted."""
        self._ask(command)
        return True

    def shell_requested(self) -> bool:
        """Note that a shell is wanted."""
        self._ask(None)
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        """Whether it is files; there is no other one."""
        return subsystem == "sftp"

    def session_started(self) -> None:
        """Begin."""
        self._begin(self)

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:  # noqa: ARG002 - nothing is drawn in pixels
        """Pass another size on."""
        self.inflow.put(AttachmentSize(size=terminal_size(width, height)))

    def signal_received(self, signal: str) -> None:
        """Pass a signal on."""
        number = signal_number(signal)
        if number is not None:
            self.inflow.put(AttachmentSignal(number=number))

    def output(self, data: bytes) -> None:
        """Send output, unless nobody reads it: then the command hears it like one that writes into a closed pipe."""
        if self._unread is None:
            super().output(data)
            return
        if self._unread == 0:
            self.inflow.put(AttachmentSignal(number=int(SIGPIPE)))
        self._unread += len(data)
        if self._unread > MOST_UNREAD:
            self.gone.set()

    def error_output(self, data: bytes) -> None:
        """Send error output."""
        if not self._session.is_closing():
            self._session.write_stderr(data)

    def output_end(self) -> None:
        """Keep it to oneself until the exit code is told: a client that has said all closes the channel at this word.

        A shared one (ControlMaster) then takes no exit code any more, and scp fails.
        """

    def ends(self, code: int, words: str) -> None:
        """Tell the client how it ended, with a line of last words, if there are any."""
        if words and not self._session.is_closing():
            self._session.write_stderr(f"{words}\r\n".encode())
        self._session.exit(code)

    def _ask(self, line: str | None) -> None:
        self.request, self.left_out = command_request(line, self._terminal, self._session.get_environment_bytes())

    def _nobody_reads(self) -> None:
        self._unread = 0


class ConnectionSession(ChannelSide, asyncssh.SSHTCPSession[bytes]):
    """A connection that somebody has made to a port of the user's machine."""

    def __init__(self, channel: asyncssh.SSHTCPChannel[bytes]) -> None:
        super().__init__(channel)
        self.open = asyncio.Event()
        """Set once data may go over it."""

    def session_started(self) -> None:
        """Begin."""
        self.open.set()

    def ends(self) -> None:
        """Close it, once all output is out."""
        if not self.gone.is_set():
            self._channel.close()
