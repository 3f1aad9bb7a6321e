"""Accounts attach to executions: what each of them hears, and what the audit log has of it.

The rule itself is a table in tests/unit/domain/test_attaching.py; this is the way from a call to that table and back.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from muster.client.client import Client
from muster.domain.attachments.frame import AttachmentEnded
from muster.domain.attachments.request import (
    AttachmentKind,
    AttachmentRequest,
    CommandRequest,
    ConnectionRequest,
    FilesRequest,
)
from muster.domain.errors import MusterError
from muster.domain.fleet.access import EVERYWHERE, Access, AuditEntry, Permissions
from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from tests.integration.attached_people import WITHIN, fleet_with_relay, person_of, running

COMMAND, CONNECTION, FILES = AttachmentKind
REQUESTS: Mapping[AttachmentKind, AttachmentRequest] = {
    COMMAND: CommandRequest(words=("echo", "word-of-a-command"), env=("NAME=value-of-a-variable",)),
    CONNECTION: ConnectionRequest(port=9),
    FILES: FilesRequest(),
}

MAY = "allowed"
REFUSED = "refused"
ANOTHERS = (
    "PermissionDeniedError: sleeper was submitted by another account; attaching to it needs operator access to project "
    "vision, or `muster projects allow vision --attach members`"
)
CLOSED = (
    "PermissionDeniedError: project vision is closed for attaching; an admin opens it with "
    "`muster projects allow vision --attach owner`"
)
NO_FILES = (
    "PermissionDeniedError: project vision is closed for files in running executions; an admin opens it with "
    "`muster projects allow vision --files`"
)
VIEWER = "PermissionDeniedError: vic may not do that; it needs member access to the project"
STRANGER = "UnknownNameError: there is no job {job}; `muster jobs --all` lists them"

SETTINGS: Mapping[str, AttachPermission] = {
    "owner": AttachPermission(),
    "members": AttachPermission(who=Attachers.MEMBERS),
    "nobody": AttachPermission(who=Attachers.NOBODY),
    "no files": AttachPermission(who=Attachers.MEMBERS, files=False),
}
GRANTS: Mapping[str, Mapping[str, Access]] = {
    "bob": {"vision": Access.MEMBER},
    "oz": {"vision": Access.OPERATOR},
    "vic": {"vision": Access.VIEWER},
    "root": {EVERYWHERE: Access.ADMIN},
    "eve": {"other": Access.OPERATOR},
}
"""Accounts beside the owner."""

EXPECTED: Mapping[tuple[str, str], tuple[str, str, str]] = {
    ("owner", "owner"): (MAY, MAY, MAY),
    ("owner", "bob"): (ANOTHERS, ANOTHERS, ANOTHERS),
    ("owner", "oz"): (MAY, MAY, MAY),
    ("owner", "root"): (MAY, MAY, MAY),
    ("owner", "vic"): (VIEWER, VIEWER, VIEWER),
    ("owner", "eve"): (STRANGER, STRANGER, STRANGER),
    ("members", "owner"): (MAY, MAY, MAY),
    ("members", "bob"): (MAY, MAY, MAY),
    ("members", "oz"): (MAY, MAY, MAY),
    ("members", "root"): (MAY, MAY, MAY),
    ("members", "vic"): (VIEWER, VIEWER, VIEWER),
    ("members", "eve"): (STRANGER, STRANGER, STRANGER),
    ("nobody", "owner"): (CLOSED, CLOSED, CLOSED),
    ("nobody", "bob"): (CLOSED, CLOSED, CLOSED),
    ("nobody", "oz"): (CLOSED, CLOSED, CLOSED),
    ("nobody", "root"): (CLOSED, CLOSED, CLOSED),
    ("nobody", "vic"): (VIEWER, VIEWER, VIEWER),
    ("nobody", "eve"): (STRANGER, STRANGER, STRANGER),
    ("no files", "owner"): (MAY, MAY, NO_FILES),
    ("no files", "bob"): (MAY, MAY, NO_FILES),
    ("no files", "oz"): (MAY, MAY, NO_FILES),
    ("no files", "root"): (MAY, MAY, NO_FILES),
    ("no files", "vic"): (VIEWER, VIEWER, VIEWER),
    ("no files", "eve"): (STRANGER, STRANGER, STRANGER),
}
"""What is heard for a command, a connection and files; by setting of the project and account."""


async def test_each_account_attaches_or_hears_why_not_and_the_audit_log_has_no_words(tmp_path: Path) -> None:
    async with (
        fleet_with_relay(tmp_path) as fleet,
        fleet.client() as admin,
        person_of(fleet, "vision") as owner,
        AsyncExitStack() as stack,
    ):
        clients: dict[str, Client] = {"owner": owner.client}
        for name, grants in GRANTS.items():
            clients[name] = await stack.enter_async_context(fleet.client(await fleet.user(name, grants)))
        job = await running(owner)
        answers: dict[tuple[str, str], tuple[str, ...]] = {}
        async with asyncio.timeout(WITHIN):
            for setting, permission in SETTINGS.items():
                await admin.projects.allow("vision", Permissions(attach=permission))
                for name, client in clients.items():
                    heard = [await _attached(client, job, request) for request in REQUESTS.values()]
                    answers[setting, name] = tuple(heard)
            while await admin.attachments.list():
                pass  # until the agent has told how all of them ended
        entries = [each for each in await admin.audit.list(limit=1000) if each.what.startswith("attachments.")]

    expected = {key: tuple(each.replace("{job}", repr(job)) for each in heard) for key, heard in EXPECTED.items()}
    assert answers == expected
    told = Counter(map(_told, entries))
    refused = {who for who, _, kind in told if kind == REFUSED}
    assert refused >= {"bob", "vic", "eve"}  # the log keeps the first ones that an address causes
    assert {each: count for each, count in told.items() if REFUSED not in each} == _entries_of(expected)
    assert [each for each in entries if re.search("word-of|value-of|NAME", f"{each}")] == []


def _told(entry: AuditEntry) -> tuple[str, str, str]:
    """An entry by account and operation, with what it says of the kind, or of the refusal."""
    kind = re.search(r"command echo \(2 words\)|forward 127\.0\.0\.1:9|files", entry.result)
    return entry.who, entry.what, REFUSED if kind is None else kind[0]


def _entries_of(answers: Mapping[tuple[str, str], tuple[str, ...]]) -> Counter[tuple[str, str, str]]:
    """The entries about what was attached: of a forward one, at its beginning, as it goes on for ten minutes."""
    told: Counter[tuple[str, str, str]] = Counter()
    for (_, name), heard in answers.items():
        who = "vision" if name == "owner" else name
        for kind, answer in zip(("command echo (2 words)", "forward 127.0.0.1:9", "files"), heard, strict=True):
            if answer == MAY and kind.startswith("forward"):
                told[who, "attachments.open", kind] = 1
            elif answer == MAY:
                told[who, "attachments.open", kind] += 1
                told[who, "attachments.end", kind] += 1
    return told


async def _attached(client: Client, job: str, request: AttachmentRequest) -> str:
    """What somebody hears who attaches, and leaves at once."""
    try:
        async with await client.attachments.open(job, request) as attachment:
            while not isinstance(request, FilesRequest) and not isinstance(await attachment.receive(), AttachmentEnded):
                pass
            return MAY
    except MusterError as error:
        return f"{type(error).__name__}: {error}"
