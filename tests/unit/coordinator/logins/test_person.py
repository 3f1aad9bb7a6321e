"""The account that a person gets, and what that person may."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.logins.person import Person, account_of, grants_of, lacking, person_of
from coordinator.logins.settings import GroupGrant, LoginSettings
from muster.domain.errors import ConflictError, PermissionDeniedError
from muster.domain.fleet.access import EVERYWHERE, Access, Account, AccountKind
from tests.unit.coordinator.logins.provider_values import ISSUER, NOW, claims

SETTINGS = LoginSettings(issuer=ISSUER, client_id="muster")
ADA = Person(identity=f"{ISSUER}|1", name="ada", groups=frozenset("ab"))
MEMBER = {"vision": Access.MEMBER}


def rule(group: str, project: str, access: Access) -> GroupGrant:
    return GroupGrant(group=group, project=project, access=access)


def person(settings: LoginSettings = SETTINGS, **said: object) -> Person:
    return person_of(claims(sub="1", **said), settings)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"preferred_username": "ada"}, "ada"),
        ({"preferred_username": "Ada.L@Example.org"}, "ada.l@example.org"),
        ({"email": "ada@example.org"}, "ada@example.org"),
        ({"preferred_username": "", "email": "ada@example.org", "email_verified": True}, "ada@example.org"),
        ({"preferred_username": 7, "email": "ada@example.org"}, "ada@example.org"),
    ],
)
def test_a_name_is_what_the_provider_says(said: dict[str, object], name: str) -> None:
    assert person(SETTINGS, **said) == Person(identity=f"{ISSUER}|1", name=name, groups=frozenset())


@pytest.mark.parametrize("name", ["a b", "-ada", "ada/../root", "node/a", "\u212aate", "x" * 64, "ada\n", "*"])
def test_a_name_that_no_account_can_have_is_refused(name: str) -> None:
    with pytest.raises(PermissionDeniedError, match="choose another claim with --oidc-name-claim"):
        person(preferred_username=name)


@pytest.mark.parametrize("said", [{}, {"email": "ada@example.org", "email_verified": "false"}, {"sub": "1"}])
def test_who_has_no_name_is_refused(said: dict[str, object]) -> None:
    with pytest.raises(PermissionDeniedError, match="does not say what you are called"):
        person_of(claims(**said), SETTINGS)


@pytest.mark.parametrize(
    ("said", "groups"),
    [
        (["a", "b"], {"a", "b"}),
        ("a", {"a"}),
        ([], set()),
        (None, set()),
        (["a", "", None, 7, ["b"], {"c": 1}], {"a"}),
        ({"a": "b"}, set()),
        (True, set()),
    ],
    ids=str,
)
def test_groups_are_texts(said: object, groups: set[str]) -> None:
    assert person(preferred_username="ada", groups=said).groups == groups


def test_an_address_that_nobody_has_verified_is_no_group() -> None:
    settings = replace(SETTINGS, groups_claim="email")
    said: dict[str, Any] = {"preferred_username": "ada", "email": "boss@example.org"}
    assert person(settings, **said, email_verified=True).groups == {"boss@example.org"}
    for verified in (False, None, "true", 1):
        assert person(settings, **said, email_verified=verified).groups == frozenset()


def test_groups_that_were_left_out_for_their_number_are_said_to_be() -> None:
    with pytest.raises(PermissionDeniedError, match="as there are too many"):
        person(preferred_username="ada", _claim_names={"groups": "src1"})


def test_what_is_lacking_is_asked_for() -> None:
    assert lacking(claims(), SETTINGS)
    assert lacking(claims(groups=[]), SETTINGS)
    assert lacking(claims(preferred_username="ada"), SETTINGS)
    assert not lacking(claims(email="ada@example.org", groups=[]), SETTINGS)


def test_the_most_that_any_group_gives_counts_in_projects_that_are_there() -> None:
    rules = (
        rule("a", "vision", Access.ADMIN),
        rule("b", "vision", Access.VIEWER),
        rule("b", "speech", Access.MEMBER),
        rule("c", EVERYWHERE, Access.ADMIN),
        rule("a", "gone", Access.ADMIN),
        rule("b", EVERYWHERE, Access.VIEWER),
    )
    for order in (rules, rules[::-1]):
        assert grants_of(frozenset("ab"), order, {"vision", "speech"}) == {
            "vision": Access.ADMIN,
            "speech": Access.MEMBER,
            EVERYWHERE: Access.VIEWER,
        }
    assert grants_of(frozenset(), rules, {"vision"}) == {}


def test_a_person_who_is_new_gets_an_account() -> None:
    made = Account(name="ada", kind=AccountKind.USER, created_at=NOW, grants=MEMBER, identity=ADA.identity)
    assert account_of(ADA, MEMBER, {}, NOW) == made


def test_a_person_who_is_known_keeps_the_account_whatever_he_is_called_now() -> None:
    old = Account(
        name="lovelace", kind=AccountKind.USER, created_at=NOW, grants={"x": Access.ADMIN}, identity=ADA.identity
    )
    other = Account(name="ada", kind=AccountKind.USER, created_at=NOW)
    assert account_of(ADA, MEMBER, {"lovelace": old, "ada": other}, NOW) == replace(old, grants=MEMBER)


@pytest.mark.parametrize("identity", ["", f"{ISSUER}|2", "https://other.example|1", f"{ISSUER}|1 "])
def test_an_account_of_somebody_else_is_not_taken_over(identity: str) -> None:
    taken = Account(name="ada", kind=AccountKind.USER, created_at=NOW, identity=identity)
    with pytest.raises(
        ConflictError, match=r"make room with `muster users remove ada`, or keep it and hand out a token"
    ):
        account_of(ADA, MEMBER, {"ada": taken}, NOW)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["preferred_username", "email", "email_verified", "groups", "_claim_names"])


@given(st.dictionaries(names, values))
def test_whatever_is_claimed_gives_a_sound_person_or_a_sentence(said: dict[str, Any]) -> None:
    try:
        found = person_of({**claims(), **said}, SETTINGS)
    except PermissionDeniedError as error:
        assert str(error).startswith("the identity provider ")  # noqa: PT017 - one of two outcomes
    else:
        assert found.name
        assert found.name == found.name.lower()
        assert all(isinstance(group, str) for group in found.groups)
