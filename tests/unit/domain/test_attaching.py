"""The whole table of attaching: account, access, kind, and what the project is opened for."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from muster.domain.attachments.allowed import AttachTarget, refusal_of_node, refusal_to_attach
from muster.domain.attachments.request import AttachmentKind
from muster.domain.fleet.access import OPEN, Access, Permissions
from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from muster.domain.fleet.features import ALL_FEATURES, ATTACH
from muster.domain.ids import NodeId
from muster.domain.jobs.job import LOCAL_OWNER

DEV = AttachTarget(job="dev", project="vision", owner="ada")
COMMAND, CONNECTION, FILES = AttachmentKind
SWITCHES = {COMMAND: "commands", CONNECTION: "connections", FILES: "files"}
CLOSED = "project vision is closed for attaching; an admin opens it with `muster projects allow vision --attach owner`"
ANOTHERS = (
    "dev was submitted by another account; attaching to it needs operator access to project vision, "
    "or `muster projects allow vision --attach members`"
)
NO_MEMBER = "attaching to dev needs member access to project vision"


def answer(kind: AttachmentKind, account: str, access: Access, permission: AttachPermission) -> str | None:
    return refusal_to_attach(DEV, kind=kind, account=account, access=access, permission=permission)


def without(permission: AttachPermission, switch: str) -> AttachPermission:
    closed: dict[str, Any] = {switch: False}
    return replace(permission, **closed)


@pytest.mark.parametrize("kind", AttachmentKind)
@pytest.mark.parametrize(
    ("who", "account", "access", "refusal"),
    [
        (Attachers.OWNER, "ada", Access.VIEWER, NO_MEMBER),
        (Attachers.OWNER, "ada", Access.MEMBER, None),
        (Attachers.OWNER, "ada", Access.OPERATOR, None),
        (Attachers.OWNER, "ada", Access.ADMIN, None),
        (Attachers.OWNER, "bob", Access.VIEWER, NO_MEMBER),
        (Attachers.OWNER, "bob", Access.MEMBER, ANOTHERS),
        (Attachers.OWNER, "bob", Access.OPERATOR, None),
        (Attachers.OWNER, "bob", Access.ADMIN, None),
        (Attachers.MEMBERS, "ada", Access.VIEWER, NO_MEMBER),
        (Attachers.MEMBERS, "ada", Access.MEMBER, None),
        (Attachers.MEMBERS, "ada", Access.OPERATOR, None),
        (Attachers.MEMBERS, "ada", Access.ADMIN, None),
        (Attachers.MEMBERS, "bob", Access.VIEWER, NO_MEMBER),
        (Attachers.MEMBERS, "bob", Access.MEMBER, None),
        (Attachers.MEMBERS, "bob", Access.OPERATOR, None),
        (Attachers.MEMBERS, "bob", Access.ADMIN, None),
        (Attachers.NOBODY, "ada", Access.VIEWER, NO_MEMBER),
        (Attachers.NOBODY, "ada", Access.MEMBER, CLOSED),
        (Attachers.NOBODY, "ada", Access.OPERATOR, CLOSED),
        (Attachers.NOBODY, "ada", Access.ADMIN, CLOSED),
        (Attachers.NOBODY, "bob", Access.VIEWER, NO_MEMBER),
        (Attachers.NOBODY, "bob", Access.MEMBER, CLOSED),
        (Attachers.NOBODY, "bob", Access.OPERATOR, CLOSED),
        (Attachers.NOBODY, "bob", Access.ADMIN, CLOSED),
    ],
)
def test_who_may_attach(
    kind: AttachmentKind, who: Attachers, account: str, access: Access, refusal: str | None
) -> None:
    assert answer(kind, account, access, AttachPermission(who=who)) == refusal


@pytest.mark.parametrize("closed", AttachmentKind)
def test_a_kind_that_is_closed_is_closed_for_all_and_the_others_stay_as_they_were(closed: AttachmentKind) -> None:
    switch = SWITCHES[closed]
    sentence = (
        f"project vision is closed for {switch} in running executions; an admin opens it with "
        f"`muster projects allow vision --{switch}`"
    )
    members = [access for access in Access if access is not Access.VIEWER]
    for kind, who, account, access in product(AttachmentKind, Attachers, ("ada", "bob"), members):
        before = AttachPermission(who=who)
        after = without(before, switch)
        if kind is not closed or who is Attachers.NOBODY:
            assert answer(kind, account, access, after) == answer(kind, account, access, before)
        else:
            assert answer(kind, account, access, after) == sentence


def test_by_default_the_owner_attaches_and_other_members_do_not() -> None:
    default = Permissions().attach
    assert [answer(kind, "ada", Access.MEMBER, default) for kind in AttachmentKind] == [None, None, None]
    assert [answer(kind, "bob", Access.MEMBER, default) for kind in AttachmentKind] == [ANOTHERS] * 3


def test_what_is_opened_for_everything_takes_every_kind_from_every_member() -> None:
    for kind, account in product(AttachmentKind, ("ada", LOCAL_OWNER)):
        assert answer(kind, account, Access.MEMBER, OPEN.attach) is None


def test_a_node_takes_attachments_when_its_agent_says_so() -> None:
    node = NodeId("gpu-7")
    assert refusal_of_node(node, ALL_FEATURES) is None
    assert refusal_of_node(node, {ATTACH}) is None
    sentence = "gpu-7 takes no attachments (its agent was started with --no-attach, or is older)"
    assert refusal_of_node(node, ALL_FEATURES - {ATTACH}) == sentence
    assert refusal_of_node(node, frozenset()) == sentence
