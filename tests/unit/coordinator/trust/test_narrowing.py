"""What a token may that may less than its account, and what it may make."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from coordinator.trust.caller import Caller, CallerKind
from coordinator.trust.narrowing import within
from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.access import EVERYWHERE, Access, IssuedToken, narrowed

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ALL = {EVERYWHERE: Access.ADMIN}
SOME = {"red": Access.MEMBER, "blue": Access.VIEWER}


@pytest.mark.parametrize(
    ("grants", "access", "projects", "expected"),
    [
        (SOME, None, (), SOME),
        (SOME, Access.VIEWER, (), {"red": Access.VIEWER, "blue": Access.VIEWER}),
        (SOME, Access.ADMIN, (), SOME),
        (SOME, None, ("red",), {"red": Access.MEMBER}),
        (SOME, None, ("green",), {}),
        (ALL, None, ("red",), {"red": Access.ADMIN}),
        (ALL, Access.MEMBER, ("red",), {"red": Access.MEMBER}),
        (
            {EVERYWHERE: Access.VIEWER, "red": Access.ADMIN},
            None,
            ("red", "blue"),
            {"red": Access.ADMIN, "blue": Access.VIEWER},
        ),
    ],
)
def test_a_token_never_may_more_than_its_account(
    grants: Mapping[str, Access], access: Access | None, projects: tuple[str, ...], expected: Mapping[str, Access]
) -> None:
    assert narrowed(grants, access, projects) == expected


def maker(access: Access | None = None, projects: tuple[str, ...] = ()) -> Caller:
    return Caller(kind=CallerKind.USER, name="ada", grants=ALL, access=access, projects=projects)


def test_a_token_gives_on_what_it_has_and_no_more() -> None:
    assert within(maker(), None, ()) == (None, ())
    assert within(maker(), Access.MEMBER, ("red",)) == (Access.MEMBER, ("red",))
    assert within(maker(Access.OPERATOR, ("red", "blue")), None, ()) == (Access.OPERATOR, ("red", "blue"))
    assert within(maker(Access.OPERATOR, ("red", "blue")), Access.MEMBER, ("red",)) == (Access.MEMBER, ("red",))


@pytest.mark.parametrize(
    ("who", "access", "projects"),
    [
        (maker(Access.VIEWER), Access.VIEWER, ()),
        (maker(Access.MEMBER), Access.ADMIN, ()),
        (maker(projects=("red",)), None, ("red", "blue")),
    ],
)
def test_a_token_makes_none_that_may_more_than_itself(
    who: Caller, access: Access | None, projects: tuple[str, ...]
) -> None:
    with pytest.raises(PermissionDeniedError):
        within(who, access, projects)


def test_a_token_is_idle_since_it_was_shown_last_or_else_since_it_was_made() -> None:
    made = IssuedToken(id="t", account="ada", note="", created_at=NOW)
    used = IssuedToken(id="t", account="ada", note="", created_at=NOW, used_at=NOW + timedelta(days=5))
    later = NOW + timedelta(days=3)
    assert (made.idle_since(NOW), made.idle_since(later), used.idle_since(later)) == (False, True, False)
