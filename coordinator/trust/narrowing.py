"""What a token may give on: nobody makes a token that may more than the one that was shown for it."""

from coordinator.trust.caller import Caller
from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.access import Access


def within(maker: Caller, access: Access | None, projects: tuple[str, ...]) -> tuple[Access | None, tuple[str, ...]]:
    """Most access and projects of a token that the caller makes for the own account; raises PermissionDeniedError."""
    if maker.access is Access.VIEWER:
        raise PermissionDeniedError("this token can only look; make tokens with one that may more")
    if maker.access is not None and (access is None or not maker.access.covers(access)):
        if access is not None:
            raise PermissionDeniedError(f"this token has {maker.access} access at most, so it makes none for {access}")
        access = maker.access
    beyond = sorted(set(projects) - set(maker.projects)) if maker.projects else []
    if beyond:
        raise PermissionDeniedError(f"this token does not count in {', '.join(beyond)}, so it makes none that does")
    return access, projects or maker.projects
