"""The user of the node that user code runs as."""

from muster.domain.fleet.user import NOBODY, JobUser, numeric
from muster.domain.jobs.job import Role

__all__ = ["NOBODY", "USER_NAME", "JobUser", "numeric", "user_of"]

USER_NAME = "muster"
"""What user code is called where nobody need know its user; many libraries ask, and fail without an answer."""


def user_of(role: Role, job_user: JobUser | None) -> JobUser | None:
    """The user of a role's containers; None: one that only the image knows, by the role's name for it or its own."""
    if role.user is not None:
        return numeric(role.user)
    return None if role.security.image_user else job_user
