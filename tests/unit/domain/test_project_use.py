"""What is said of those who use a project: how many, the first ones, and the command for each."""

import pytest

from muster.domain.fleet.project_use import USERS_NAMED, ProjectUse, UseKind, use_by


@pytest.mark.parametrize(
    ("kind", "one", "several"),
    [
        (
            UseKind.JOB,
            "1 job has not ended (a): `muster stop a`",
            "2 jobs have not ended (a, b): `muster stop --all --project vision`",
        ),
        (
            UseKind.KEPT_JOB,
            "1 job of it is still kept (a): `muster delete a`",
            "2 jobs of it are still kept (a, b): `muster delete --all --project vision`",
        ),
        (
            UseKind.SECRET,
            "1 secret is kept in it (a): `muster secrets remove a --project vision`",
            "2 secrets are kept in it (a, b): `muster secrets remove NAME --project vision`",
        ),
        (
            UseKind.GRANT,
            "1 account has access to it (a): `muster projects revoke vision a`",
            "2 accounts have access to it (a, b): `muster projects revoke vision ACCOUNT`",
        ),
        (
            UseKind.TOKEN,
            "1 token is made for it (a): `muster tokens revoke a`",
            "2 tokens are made for it (a, b): `muster tokens revoke ID`",
        ),
    ],
)
def test_each_kind_says_who_it_is_and_which_command_ends_it(kind: UseKind, one: str, several: str) -> None:
    assert [use.told("vision") for use in use_by(kind, ["a"])] == [one]
    assert [use.told("vision") for use in use_by(kind, ["a", "b"])] == [several]


def test_of_very_many_the_first_ones_are_named() -> None:
    names = [f"s{number}" for number in range(USERS_NAMED + 1)]

    assert use_by(UseKind.SECRET, names) == (
        ProjectUse(kind=UseKind.SECRET, count=USERS_NAMED + 1, first=tuple(names[:USERS_NAMED])),
    )
    [use] = use_by(UseKind.SECRET, names)
    assert use.told("vision").startswith("6 secrets are kept in it (s0, s1, s2, s3, s4, …): ")
    assert use_by(UseKind.SECRET, ()) == ()
