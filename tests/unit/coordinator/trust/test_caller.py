"""What a caller may in a project."""

import pytest

from coordinator.trust.caller import LOCAL, STRANGER, Caller, CallerKind
from muster.domain.fleet.access import EVERYWHERE, Access


@pytest.mark.parametrize(
    ("everywhere", "here", "found"),
    [
        (None, None, None),
        (Access.VIEWER, None, Access.VIEWER),
        (None, Access.OPERATOR, Access.OPERATOR),
        (Access.VIEWER, Access.MEMBER, Access.MEMBER),
        (Access.ADMIN, Access.VIEWER, Access.ADMIN),
    ],
)
def test_the_larger_of_two_grants_counts(everywhere: Access | None, here: Access | None, found: Access | None) -> None:
    grants = {project: has for project, has in ((EVERYWHERE, everywhere), ("vision", here)) if has is not None}
    caller = Caller(kind=CallerKind.USER, name="ada", grants=grants)
    assert caller.access_to("vision") == found
    assert caller.access_to("sound") == everywhere
    assert all(caller.may(access, "vision") == (found is not None and found.covers(access)) for access in Access)


def test_strangers_have_no_access_and_the_user_of_muster_up_has_all() -> None:
    assert STRANGER.access_to("default") is None
    assert LOCAL.access_to("default") is Access.ADMIN
