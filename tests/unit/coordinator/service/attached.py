"""Attachments that are open, for tests of what is kept of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from coordinator.service.attaching.held import HeldAttachment, about, said_of
from coordinator.trust.caller import LOCAL, Caller, CallerKind
from muster.domain.attachments.request import (
    AttachmentReport,
    AttachmentRequest,
    CommandRequest,
    ConnectionRequest,
    OpenedAttachment,
)
from muster.domain.fleet.access import Access
from muster.domain.ids import ExecutionId, JobId, NodeId

AT = datetime(2026, 11, 25, 8, tzinfo=UTC)
LS = CommandRequest(words=("ls", "-l"))
JUPYTER = ConnectionRequest(port=8888)


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def caller(name: str) -> Caller:
    if name == LOCAL.name:
        return LOCAL
    return Caller(kind=CallerKind.USER, name=name, grants={"vision": Access.MEMBER}, origin=f"ipv4:10.0.0.1:{name}")


def held(
    attachment: str,
    request: AttachmentRequest = LS,
    *,
    account: str = "ada",
    job: str = "dev",
    rank: int = 0,
    since: datetime = AT,
) -> HeldAttachment:
    """An attachment to a rank of the job of that name; each rank is on a node of its own."""
    opened = OpenedAttachment(
        attachment=attachment,
        job=JobId(f"j-{job}"),
        job_name=job,
        rank=rank,
        node=NodeId(f"gpu-{rank}"),
        account=account,
        kind=request.kind,
        about=about(request),
        since=since,
        bytes_in=0,
        bytes_out=0,
    )
    return HeldAttachment(
        opened=opened,
        execution=ExecutionId(f"j-{job}-1-{rank}"),
        project="vision",
        owner="ada",
        caller=caller(account),
        said=said_of(request),
    )


def elsewhere(there: HeldAttachment, project: str) -> HeldAttachment:
    return replace(there, project=project)


def report(attachment: str, *, moved: tuple[int, int] = (0, 0), code: int = 0, text: str = "") -> AttachmentReport:
    return AttachmentReport(attachment=attachment, code=code, text=text, bytes_in=moved[0], bytes_out=moved[1])
