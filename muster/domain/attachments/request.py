"""Attachments as they are asked for: a command, a connection, files, the main program or kept shells."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from muster.domain.ids import ExecutionId, JobId, NodeId

LONGEST_ADDRESS = 255
"""Characters of a host name, or of an address."""

LARGEST_TERMINAL = 9999
"""Rows, or columns, of the largest terminal."""

HERE = "127.0.0.1"
"""The host of a connection that names none: the execution itself."""


class AttachmentKind(StrEnum):
    """Each of the three things that an attachment can be."""

    COMMAND = "command"
    CONNECTION = "connection"
    FILES = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSize:
    """The size of a terminal in characters."""

    rows: int
    columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """A command that is to run in an execution."""

    words: tuple[str, ...] = ()
    """Program and arguments, as they are. None: the login shell of the user of the execution."""
    env: tuple[str, ...] = ()
    """Variables beside those of the execution, as NAME=VALUE."""
    workdir: str = ""
    """Absolute; empty: that of user code."""
    terminal: TerminalSize | None = None
    has_input: bool = False
    line: bool = False
    """Whether the words are one line, which the login shell runs."""
    kept: str = ""
    """Name of a kept shell, which is made or taken up again; empty: none."""

    @property
    def kind(self) -> AttachmentKind:
        """The kind of attachment."""
        return AttachmentKind.COMMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRequest:
    """A TCP connection that is made in an execution."""

    port: int
    """1 to 65535."""
    host: str = HERE

    @property
    def kind(self) -> AttachmentKind:
        """The kind of attachment."""
        return AttachmentKind.CONNECTION


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesRequest:
    """Files of an execution, over SFTP version 3."""

    @property
    def kind(self) -> AttachmentKind:
        """The kind of attachment."""
        return AttachmentKind.FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class MainProgramRequest:
    """The main program of an execution whose job has `tty` or `stdin`."""

    terminal: TerminalSize | None = None
    """The size of the terminal of whoever attaches; None: that of the main program stays as it is."""

    @property
    def kind(self) -> AttachmentKind:
        """The kind of attachment: who may give it input may as well run commands, and the other way round."""
        return AttachmentKind.COMMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptShellsRequest:
    """The kept shells of an execution, which are listed, or of which one is ended."""

    end: str = ""
    """Name of the one that is to end; empty: they are listed."""

    @property
    def kind(self) -> AttachmentKind:
        """The kind of attachment: shells are commands."""
        return AttachmentKind.COMMAND


AttachmentRequest = CommandRequest | ConnectionRequest | FilesRequest | MainProgramRequest | KeptShellsRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentPass:
    """What a client opens its side of an attachment with."""

    attachment: str
    """Names the attachment."""
    job: JobId
    rank: int
    """Where it is, also where the client has named none."""
    relay: str
    """HOST:PORT of the relay; a host that is empty is that of the coordinator."""
    ticket: str
    resume_within: timedelta
    """The time for which either side may be away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentOrder:
    """What an agent opens its side of an attachment with."""

    attachment: str
    execution: ExecutionId
    request: AttachmentRequest
    relay: str
    ticket: str
    resume_within: timedelta
    who: str
    """The account that attaches."""
    token: str
    """The id of the token with which it did; empty: under `muster up`."""
    since: datetime
    """When it was opened, by the coordinator's clock."""
    about: str
    """The first word of a command, the address of a connection, or the name of a kept shell."""

    @property
    def served(self) -> "ServedAttachment":
        """What the agent tells of it, while it serves it."""
        return ServedAttachment(
            attachment=self.attachment,
            execution=self.execution,
            kind=self.request.kind,
            who=self.who,
            token=self.token,
            since=self.since,
            about=self.about,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAttachment:
    """An attachment that an agent serves, as it tells a coordinator that may have been restarted."""

    attachment: str
    execution: ExecutionId
    kind: AttachmentKind
    who: str
    """The account that attached."""
    token: str
    """The id of the token with which it did; empty: under `muster up`."""
    since: datetime
    """When it was opened, by the coordinator's clock."""
    about: str
    """The first word of a command, the address of a connection, or the name of a kept shell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeForAttached:
    """What an agent is to tell the people who are attached to executions of its node."""

    attachments: tuple[str, ...]
    text: str
    """A sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentReport:
    """How an attachment ended, as its agent tells."""

    attachment: str
    code: int
    text: str
    """Empty, or why it ended where that is not the end of what was attached to."""
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAttachment:
    """An attachment that is open, as `muster attachments` lists it."""

    attachment: str
    job: JobId
    job_name: str
    rank: int
    node: NodeId
    account: str
    """The account that attached."""
    kind: AttachmentKind
    about: str
    """The first word of a command, the address of a connection, or the name of a kept shell."""
    since: datetime
    bytes_in: int
    """Bytes to the execution so far."""
    bytes_out: int
    """Bytes from the execution so far."""
