"""Whoever may not attach any more is attached no longer: at once, over the real relay with TLS.

The coordinator looks again by itself only once a minute, so what ends within seconds has ended because of the call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from muster.client.attachments.attachment import Attachment
from muster.client.client import Client
from muster.domain.attachments.frame import (
    AttachmentEnded,
    AttachmentInput,
    AttachmentOutput,
    AttachmentTrouble,
)
from muster.domain.fleet.access import Access, AccountKind, Permissions
from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from muster.trust.tokens import parse_api_token
from tests.integration.attached_people import WITHIN, Person, fleet_with_relay, person_of, running

GONE_WITHIN = 5.0
"""Seconds after the answer of the call: one is what users may count on, and a machine under load needs some more."""


Loss = Callable[[Client, Person], Awaitable[object]]


def allowing(permission: AttachPermission) -> Loss:
    """Have the project of a person let so much be attached."""
    return lambda admin, person: admin.projects.allow(person.name, Permissions(attach=permission))


LOST: Mapping[str, tuple[Loss, str]] = {
    "closed": (
        allowing(AttachPermission(who=Attachers.NOBODY)),
        "project closed is closed for attaching; an admin opens it with `muster projects allow closed --attach owner`",
    ),
    "no-commands": (
        allowing(AttachPermission(commands=False)),
        (
            "project no-commands is closed for commands in running executions; an admin opens it with "
            "`muster projects allow no-commands --commands`"
        ),
    ),
    "viewer": (
        lambda admin, person: admin.accounts.grant(person.name, person.name, Access.VIEWER),
        "attaching to sleeper needs member access to project viewer",
    ),
    "stranger": (
        lambda admin, person: admin.accounts.grant(person.name, person.name, None),
        "attaching to sleeper needs member access to project stranger",
    ),
    "revoked": (lambda admin, person: admin.tokens.revoke(person.token), "what you have shown counts no more"),
    "removed": (
        lambda admin, person: admin.accounts.remove(person.name, AccountKind.USER),
        "what you have shown counts no more",
    ),
}
"""Ways to lose the right, each by the name of a person, with what is told then."""


async def test_each_way_to_lose_the_right_ends_what_is_attached_at_once(tmp_path: Path) -> None:
    async with fleet_with_relay(tmp_path) as fleet, fleet.client() as admin:
        told: dict[str, AttachmentEnded] = {}
        for name, (lose, _) in LOST.items():
            async with person_of(fleet, name) as person, await person.attach(await running(person)) as attachment:
                await lose(admin, person)
                async with asyncio.timeout(GONE_WITHIN):
                    told[name] = await end_of(attachment)

        lost = {
            name: AttachmentEnded(code=255, trouble=AttachmentTrouble.CLOSED, text=text)
            for name, (_, text) in LOST.items()
        }
        assert told == lost


async def test_a_member_is_gone_when_the_project_is_closed_to_members_and_the_owner_stays(tmp_path: Path) -> None:
    async with fleet_with_relay(tmp_path) as fleet, fleet.client() as admin, person_of(fleet, "ada") as ada:
        await allowing(AttachPermission(who=Attachers.MEMBERS))(admin, ada)
        job = await running(ada)
        token = await fleet.user("bob", {"ada": Access.MEMBER})
        async with fleet.client(token) as client, await ada.attach(job) as owners:
            bob = Person(name="bob", token=parse_api_token(token).id, client=client)
            async with await bob.attach(job) as members:
                await allowing(AttachPermission(who=Attachers.OWNER))(admin, ada)
                async with asyncio.timeout(GONE_WITHIN):
                    end = await end_of(members)

            assert end.text.startswith("sleeper was submitted by another account")
            assert await echoed(owners) == b"still here"


async def test_who_may_more_than_before_or_the_same_stays(tmp_path: Path) -> None:
    async with (
        fleet_with_relay(tmp_path) as fleet,
        fleet.client() as admin,
        person_of(fleet, "ada") as ada,
        await ada.attach(await running(ada)) as attachment,
    ):
        await admin.projects.add("other")
        await admin.accounts.grant("ada", "other", Access.VIEWER)
        await admin.accounts.grant("ada", "ada", Access.OPERATOR)
        await allowing(AttachPermission(who=Attachers.MEMBERS, files=False))(admin, ada)

        assert await echoed(attachment) == b"still here"


async def end_of(attachment: Attachment) -> AttachmentEnded:
    while not isinstance(frame := await attachment.receive(), AttachmentEnded):
        pass
    return frame


async def echoed(attachment: Attachment) -> bytes:
    """What `cat` gives back."""
    await attachment.send(AttachmentInput(data=b"still here"))
    async with asyncio.timeout(WITHIN):
        frame = await attachment.receive()
    assert isinstance(frame, AttachmentOutput), frame
    return frame.data
