"""Rights to attach: asked when an attachment is opened, and again whenever somebody may do less than before."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from coordinator.service.attaching.place import AttachPlace
from coordinator.trust.caller import Caller
from muster.domain.attachments.allowed import AttachTarget, refusal_to_attach
from muster.domain.attachments.request import AttachmentKind
from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.access import Permissions


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachRights:
    """What decides who may attach."""

    permissions_of: Callable[[str], Permissions]
    """What a project is opened for."""
    still_counts: Callable[[Caller, datetime], bool]
    """Whether a caller would be let in again, with no less than before."""

    holder_of: Callable[[str, str, datetime], Caller | None]
    """The caller that an account and the id of its token stand for; None: they count no more."""

    def require(self, caller: Caller, place: AttachPlace, kind: AttachmentKind) -> None:
        """Raise PermissionDeniedError unless a caller, who may do orders in the project, may attach there so."""
        access = caller.access_to(place.project)
        assert access is not None, "the table of operations has let the caller in"
        refusal = refusal_to_attach(
            AttachTarget(job=place.job_name, project=place.project, owner=place.owner),
            kind=kind,
            account=caller.name,
            access=access,
            permission=self.permissions_of(place.project).attach,
        )
        if refusal is not None:
            raise PermissionDeniedError(refusal)
