"""Rights to attach: asked when an attachment is opened, and again whenever somebody may do less than before."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from coordinator.service.attaching.held import HeldAttachment
from coordinator.service.attaching.place import AttachPlace
from coordinator.trust.caller import Caller
from muster.domain.attachments.allowed import AttachTarget, refusal_to_attach
from muster.domain.attachments.request import AttachmentKind
from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.access import Permissions

COUNTS_NO_MORE = "what you have shown counts no more"
"""What somebody is told who is attached, and whose token or account is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachRights:
    """What decides who may attach."""

    permissions_of: Callable[[str], Permissions]
    """What a project is opened for."""
    holder_of: Callable[[str, str, datetime], Caller | None]
    """The caller that an account and the id of its token stand for; None: they count no more."""

    def require(self, caller: Caller, place: AttachPlace, kind: AttachmentKind) -> None:
        """Raise PermissionDeniedError unless a caller, who may do orders in the project, may attach there so."""
        target = AttachTarget(job=place.job_name, project=place.project, owner=place.owner)
        refusal = self._refusal(caller, target, kind)
        if refusal is not None:
            raise PermissionDeniedError(refusal)

    def refusal_to_stay(self, held: HeldAttachment, now: datetime) -> str | None:
        """Why somebody who is attached may not be so any more, as a new attachment would be refused; None: it may."""
        caller = self.holder_of(held.caller.name, held.caller.token, now)
        if caller is None:
            return COUNTS_NO_MORE
        target = AttachTarget(job=held.opened.job_name, project=held.project, owner=held.owner)
        return self._refusal(caller, target, held.opened.kind)

    def _refusal(self, caller: Caller, target: AttachTarget, kind: AttachmentKind) -> str | None:
        return refusal_to_attach(
            target,
            kind=kind,
            account=caller.name,
            access=caller.access_to(target.project),
            permission=self.permissions_of(target.project).attach,
        )
