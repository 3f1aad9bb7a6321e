"""Values of attachments.proto: what is asked for, and what is told of it."""

from collections.abc import Iterable

from muster.domain.attachments.frame import LONGEST_COMMAND
from muster.domain.attachments.request import (
    HERE,
    LARGEST_TERMINAL,
    LONGEST_ADDRESS,
    AttachmentKind,
    AttachmentOrder,
    AttachmentPass,
    AttachmentReport,
    AttachmentRequest,
    CommandRequest,
    ConnectionRequest,
    FilesRequest,
    KeptShellsRequest,
    MainProgramRequest,
    NoticeForAttached,
    OpenedAttachment,
    ServedAttachment,
    TerminalSize,
)
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.jobs.restart import MAX_EXIT_CODE
from muster.rpc.v1 import attachments_pb2 as pb
from muster.trust.tickets import LONGEST_TICKET_TEXT
from muster.wire import checks
from muster.wire.checks import WireError


def terminal_size_to_wire(size: TerminalSize) -> pb.TerminalSize:
    """The size of a terminal."""
    return pb.TerminalSize(rows=size.rows, columns=size.columns)


def terminal_size_from_wire(message: pb.TerminalSize) -> TerminalSize:
    """The size of a terminal; raises WireError."""
    return TerminalSize(
        rows=checks.between(message.rows, 1, LARGEST_TERMINAL, "TerminalSize.rows"),
        columns=checks.between(message.columns, 1, LARGEST_TERMINAL, "TerminalSize.columns"),
    )


def texts_from_wire(values: Iterable[bytes], where: str) -> tuple[str, ...]:
    """Words of a command, whatever their bytes are; raises WireError."""
    return checks.words((value.decode(errors="surrogateescape") for value in values), where)


def texts_to_wire(values: Iterable[str]) -> list[bytes]:
    """Words of a command as bytes."""
    return [value.encode(errors="surrogateescape") for value in values]


def attachment_request_to_wire(request: AttachmentRequest) -> pb.AttachmentRequest:
    """What to attach to."""
    match request:
        case CommandRequest():
            return pb.AttachmentRequest(
                command=pb.CommandRequest(
                    words=texts_to_wire(request.words),
                    env=texts_to_wire(request.env),
                    workdir=request.workdir,
                    terminal=None if request.terminal is None else terminal_size_to_wire(request.terminal),
                    has_input=request.has_input,
                    line=request.line,
                    kept=request.kept,
                )
            )
        case ConnectionRequest():
            return pb.AttachmentRequest(connection=pb.ConnectionRequest(port=request.port, host=request.host))
        case FilesRequest():
            return pb.AttachmentRequest(files=pb.FilesRequest())
        case MainProgramRequest(terminal=size):
            shown = None if size is None else terminal_size_to_wire(size)
            return pb.AttachmentRequest(main_program=pb.MainProgramRequest(terminal=shown))
        case KeptShellsRequest(end=name):
            return pb.AttachmentRequest(kept_shells=pb.KeptShellsRequest(end=name))


def attachment_request_from_wire(message: pb.AttachmentRequest) -> AttachmentRequest:
    """What to attach to; raises WireError."""
    match message.WhichOneof("what"):
        case "command":
            return _command(message.command)
        case "connection":
            return ConnectionRequest(
                port=checks.port(message.connection.port, "ConnectionRequest.port"),
                host=_host(message.connection.host or HERE),
            )
        case "files":
            return FilesRequest()
        case "main_program":
            sent = message.main_program
            size = terminal_size_from_wire(sent.terminal) if sent.HasField("terminal") else None
            return MainProgramRequest(terminal=size)
        case "kept_shells":
            name = message.kept_shells.end
            return KeptShellsRequest(end=checks.port_name(name, "KeptShellsRequest.end") if name else "")
        case _:
            raise WireError("AttachmentRequest", "says nothing of what to attach to that is known")


def attachment_pass_to_wire(shown: AttachmentPass) -> pb.OpenAttachmentResponse:
    """What a client opens its side with."""
    return pb.OpenAttachmentResponse(
        attachment=shown.attachment,
        job=shown.job,
        rank=shown.rank,
        relay=shown.relay,
        ticket=shown.ticket,
        resume_within=checks.duration(shown.resume_within),
    )


def attachment_pass_from_wire(message: pb.OpenAttachmentResponse) -> AttachmentPass:
    """What a client opens its side with; raises WireError."""
    where = "OpenAttachmentResponse"
    return AttachmentPass(
        attachment=checks.identifier(message.attachment, f"{where}.attachment"),
        job=JobId(checks.identifier(message.job, f"{where}.job")),
        rank=checks.between(message.rank, 0, checks.MAX_SIZE - 1, f"{where}.rank"),
        relay=_relay(message.relay, f"{where}.relay"),
        ticket=_ticket(message.ticket, f"{where}.ticket"),
        resume_within=checks.span(message.resume_within, f"{where}.resume_within"),
    )


def notice_for_attached_to_wire(notice: NoticeForAttached) -> pb.NoticeForAttached:
    """What people who are attached are told."""
    return pb.NoticeForAttached(attachments=notice.attachments, text=notice.text)


def notice_for_attached_from_wire(message: pb.NoticeForAttached) -> NoticeForAttached:
    """What people who are attached are told; raises WireError."""
    where = "NoticeForAttached.attachments"
    return NoticeForAttached(
        attachments=tuple(checks.identifier(each, where) for each in message.attachments),
        text=checks.message(message.text),
    )


def attachment_order_to_wire(order: AttachmentOrder) -> pb.AttachmentOrder:
    """What an agent opens its side with."""
    return pb.AttachmentOrder(
        attachment=order.attachment,
        execution=order.execution,
        what=attachment_request_to_wire(order.request),
        relay=order.relay,
        ticket=order.ticket,
        resume_within=checks.duration(order.resume_within),
        who=order.who,
        token=order.token,
        since=checks.timestamp(order.since),
        about=order.about,
    )


def attachment_order_from_wire(message: pb.AttachmentOrder) -> AttachmentOrder:
    """What an agent opens its side with; raises WireError."""
    where = "AttachmentOrder"
    return AttachmentOrder(
        attachment=checks.identifier(message.attachment, f"{where}.attachment"),
        execution=ExecutionId(checks.identifier(message.execution, f"{where}.execution")),
        request=attachment_request_from_wire(message.what),
        relay=_relay(message.relay, f"{where}.relay"),
        ticket=_ticket(message.ticket, f"{where}.ticket"),
        resume_within=checks.span(message.resume_within, f"{where}.resume_within"),
        who=checks.text(message.who, f"{where}.who"),
        token=checks.text(message.token, f"{where}.token"),
        since=checks.moment(message.since, f"{where}.since"),
        about=checks.text(message.about, f"{where}.about"),
    )


def served_attachment_to_wire(served: ServedAttachment) -> pb.ServedAttachment:
    """An attachment that an agent serves."""
    return pb.ServedAttachment(
        attachment=served.attachment,
        execution=served.execution,
        kind=served.kind,
        who=served.who,
        token=served.token,
        since=checks.timestamp(served.since),
        about=served.about,
    )


def served_attachment_from_wire(message: pb.ServedAttachment) -> ServedAttachment:
    """An attachment that an agent serves; raises WireError."""
    where = "ServedAttachment"
    return ServedAttachment(
        attachment=checks.identifier(message.attachment, f"{where}.attachment"),
        execution=ExecutionId(checks.identifier(message.execution, f"{where}.execution")),
        kind=checks.word(AttachmentKind, message.kind, f"{where}.kind"),
        who=checks.text(message.who, f"{where}.who"),
        token=checks.text(message.token, f"{where}.token"),
        since=checks.moment(message.since, f"{where}.since"),
        about=checks.text(message.about, f"{where}.about"),
    )


def attachment_report_to_wire(report: AttachmentReport) -> pb.AttachmentReport:
    """How an attachment ended."""
    return pb.AttachmentReport(
        attachment=report.attachment,
        code=report.code,
        text=report.text,
        bytes_in=report.bytes_in,
        bytes_out=report.bytes_out,
    )


def attachment_report_from_wire(message: pb.AttachmentReport) -> AttachmentReport:
    """How an attachment ended; raises WireError."""
    where = "AttachmentReport"
    return AttachmentReport(
        attachment=checks.identifier(message.attachment, f"{where}.attachment"),
        code=checks.between(message.code, 0, MAX_EXIT_CODE, f"{where}.code"),
        text=checks.message(message.text),
        bytes_in=checks.size(message.bytes_in, f"{where}.bytes_in"),
        bytes_out=checks.size(message.bytes_out, f"{where}.bytes_out"),
    )


def opened_attachment_to_wire(opened: OpenedAttachment) -> pb.OpenedAttachment:
    """An attachment that is open."""
    return pb.OpenedAttachment(
        attachment=opened.attachment,
        job=opened.job,
        job_name=opened.job_name,
        rank=opened.rank,
        node=opened.node,
        account=opened.account,
        kind=opened.kind,
        about=opened.about,
        since=checks.timestamp(opened.since),
        bytes_in=opened.bytes_in,
        bytes_out=opened.bytes_out,
    )


def opened_attachment_from_wire(message: pb.OpenedAttachment) -> OpenedAttachment:
    """An attachment that is open; raises WireError."""
    where = "OpenedAttachment"
    return OpenedAttachment(
        attachment=checks.identifier(message.attachment, f"{where}.attachment"),
        job=JobId(checks.identifier(message.job, f"{where}.job")),
        job_name=checks.text(message.job_name, f"{where}.job_name"),
        rank=checks.between(message.rank, 0, checks.MAX_SIZE - 1, f"{where}.rank"),
        node=NodeId(checks.identifier(message.node, f"{where}.node")),
        account=checks.text(message.account, f"{where}.account"),
        kind=checks.word(AttachmentKind, message.kind, f"{where}.kind"),
        about=checks.text(message.about, f"{where}.about"),
        since=checks.moment(message.since, f"{where}.since"),
        bytes_in=checks.size(message.bytes_in, f"{where}.bytes_in"),
        bytes_out=checks.size(message.bytes_out, f"{where}.bytes_out"),
    )


def _command(message: pb.CommandRequest) -> CommandRequest:
    size = sum(map(len, message.words)) + sum(map(len, message.env))
    if size > LONGEST_COMMAND:
        problem = f"has {size} bytes with the variables; at most {LONGEST_COMMAND} are taken"
        raise WireError("CommandRequest.words", problem)
    if any(each.find(b"=") < 1 for each in message.env):
        raise WireError("CommandRequest.env", "has a variable that is not written as NAME=VALUE")
    if message.line and len(message.words) != 1:
        raise WireError("CommandRequest.line", f"is true, and there are {len(message.words)} words; it needs one")
    if message.kept and not message.HasField("terminal"):
        raise WireError("CommandRequest.kept", "is given without a terminal; a kept shell has one")
    return CommandRequest(
        words=texts_from_wire(message.words, "CommandRequest.words"),
        env=texts_from_wire(message.env, "CommandRequest.env"),
        workdir=checks.absolute(message.workdir, "CommandRequest.workdir") if message.workdir else "",
        terminal=terminal_size_from_wire(message.terminal) if message.HasField("terminal") else None,
        has_input=message.has_input,
        line=message.line,
        kept=checks.port_name(message.kept, "CommandRequest.kept") if message.kept else "",
    )


def _host(value: str) -> str:
    if len(value) > LONGEST_ADDRESS:
        raise WireError("ConnectionRequest.host", f"has {len(value)} characters; at most {LONGEST_ADDRESS} are taken")
    return checks.address(value, "ConnectionRequest.host")


def _relay(value: str, where: str) -> str:
    """HOST:PORT, or :PORT for the host of the coordinator."""
    host, _, port = value.rpartition(":")
    if not port.isascii() or not port.isdigit():
        raise WireError(where, f"is {value[:80]!r}; it must be HOST:PORT")
    checks.port(int(port[:6]), where)
    if host:
        checks.address(host.removeprefix("[").removesuffix("]"), where)
    return value


def _ticket(value: str, where: str) -> str:
    if not 0 < len(value) <= LONGEST_TICKET_TEXT or not value.isascii():
        raise WireError(where, f"has {len(value)} characters; between 1 and {LONGEST_TICKET_TEXT} ASCII are taken")
    return value
