"""An attachment as the book of open ones holds it, and the words for it in lists and in the audit log."""

from dataclasses import dataclass
from typing import assert_never

from coordinator.trust.caller import Caller
from muster.domain.attachments.request import (
    AttachmentKind,
    AttachmentRequest,
    CommandRequest,
    ConnectionRequest,
    FilesRequest,
    KeptShellsRequest,
    MainProgramRequest,
    OpenedAttachment,
)
from muster.domain.ids import ExecutionId
from muster.domain.quantity import counted
from muster.domain.visible_text import visible

LONGEST_ABOUT = 64
"""Characters of the word, address or name that says what an attachment is about; a longer one is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAttachment:
    """An attachment that is open, with what decides how long it may be."""

    opened: OpenedAttachment
    execution: ExecutionId
    project: str
    owner: str
    """The account that submitted the job."""
    caller: Caller
    """The account that attached, with its token and address."""
    said: str
    """What the audit log says of it, as `said_of` has it."""

    @property
    def attachment(self) -> str:
        """The name of the attachment."""
        return self.opened.attachment

    @property
    def is_connection(self) -> bool:
        """Whether it is one connection, which has limits beside those of all others."""
        return self.opened.kind is AttachmentKind.CONNECTION


def about(request: AttachmentRequest) -> str:
    """What an attachment is about: the first word of a command, an address, the name of a kept shell, or nothing."""
    match request:
        case CommandRequest():
            return _about_command(request)
        case ConnectionRequest(host=host, port=port):
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        case FilesRequest():
            return ""
        case MainProgramRequest():
            return "main program"
        case KeptShellsRequest(end=name):
            return _short(name) if name else "kept shells"
        case _:
            assert_never(request)


def said_of(request: AttachmentRequest) -> str:
    """What the audit log says of a request: of a command the first word and how many there are, and no variables."""
    match request:
        case CommandRequest():
            return _said_of_command(request)
        case ConnectionRequest():
            return f"forward {about(request)}"
        case FilesRequest():
            return "files"
        case MainProgramRequest():
            return "main program"
        case KeptShellsRequest(end=name):
            return f"end of kept shell {_short(name)}" if name else "list of kept shells"
        case _:
            assert_never(request)


def _about_command(request: CommandRequest) -> str:
    if request.kept:
        return _short(request.kept)
    if request.line or not request.words:
        return "shell"  # the words of a line are not told apart, and may begin with a secret
    return _short(request.words[0])


def _said_of_command(request: CommandRequest) -> str:
    if request.kept:
        return f"kept shell {about(request)}"
    if request.line:
        return "a line for the shell"
    if not request.words:
        return "shell"
    return f"command {about(request)} ({counted(len(request.words), 'word')})"


def _short(text: str) -> str:
    shown = visible(text[:LONGEST_ABOUT])
    return shown if len(shown) <= LONGEST_ABOUT and len(text) <= LONGEST_ABOUT else f"{shown[: LONGEST_ABOUT - 1]}…"
