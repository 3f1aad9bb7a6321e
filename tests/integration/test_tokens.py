"""What API tokens may, how long, and who learns that one is about to end."""

from datetime import timedelta
from pathlib import Path

import pytest

from muster.client.client import Client
from muster.client.connection import Connection
from muster.domain.errors import ConflictError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, PERSON_TOKEN_LIFE, Access, AccountKind
from muster.rpc.channel import Credentials
from tests.integration.jobs import shell
from tests.integration.secured import muster, secured


async def test_tokens_of_people_end_by_themselves_and_those_of_programs_when_they_are_told_to(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await admin.accounts.add("ada", AccountKind.USER, {EVERYWHERE: Access.VIEWER})
        await admin.accounts.add("ci", AccountKind.SERVICE, {EVERYWHERE: Access.VIEWER})
        _, person = await admin.tokens.create("ada")
        _, longer = await admin.tokens.create("ada", ttl=timedelta(days=400))
        _, service = await admin.tokens.create("ci")
        assert person.expires_at == person.created_at + PERSON_TOKEN_LIFE
        assert longer.expires_at == longer.created_at + timedelta(days=400)
        assert service.expires_at is None


async def test_a_token_that_can_only_look_changes_nothing_and_makes_no_other(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        secret, token = await admin.tokens.create(access=Access.VIEWER)
        assert token.access is Access.VIEWER
        async with fleet.client(secret) as looking:
            assert await looking.nodes.list() == ()
            with pytest.raises(PermissionDeniedError):
                await looking.jobs.submit(shell("true"), queue_anyway=True)
            with pytest.raises(PermissionDeniedError):
                await looking.accounts.list()
            with pytest.raises(PermissionDeniedError, match="can only look"):
                await looking.tokens.create()
            (first,) = [each for each in await looking.tokens.list() if each.id != token.id]
            with pytest.raises(PermissionDeniedError, match="revokes itself and no other"):
                await looking.tokens.revoke(first.id)
            with pytest.raises(PermissionDeniedError, match="revokes itself and no other"):
                await looking.tokens.prune([first.id])
            assert (await looking.tokens.revoke(token.id)).revoked_at is not None


async def test_a_token_of_one_project_does_not_learn_of_the_others(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        for name in ("red", "blue"):
            await admin.projects.add(name)
        blue = await admin.jobs.submit(shell("true", project="blue"), queue_anyway=True)
        secret, _ = await admin.tokens.create(access=Access.MEMBER, projects=["red"])
        async with fleet.client(secret) as narrow:
            red = await narrow.jobs.submit(shell("true", project="red"), queue_anyway=True)
            assert [job.id async for job in narrow.jobs.list()] == [red.id]
            assert (await narrow.accounts.myself()).grants == {"red": Access.MEMBER}
            with pytest.raises(UnknownNameError):
                await narrow.jobs.get(blue.id)
            with pytest.raises(UnknownNameError):
                await narrow.jobs.submit(shell("true", project="blue"), queue_anyway=True)
            with pytest.raises(PermissionDeniedError, match="does not count in blue"):
                await narrow.tokens.create(projects=["blue"])
            _, child = await narrow.tokens.create()
        assert (child.access, child.projects) == (Access.MEMBER, ("red",))
        with pytest.raises(UnknownNameError, match="there is no project 'green'"):
            await admin.tokens.create(projects=["green"])


async def test_whoever_shows_a_token_in_its_last_days_is_told_when_it_ends(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        told: list[str] = []
        for ttl in (timedelta(days=8), timedelta(days=6)):
            secret = await fleet.user(f"u{ttl.days}", {EVERYWHERE: Access.VIEWER}, ttl)
            shown = Credentials(authority=fleet.authority.certificate, token=secret)
            connection = Connection(fleet.doors.clients, shown)
            connection.on_token_ends = told.append
            async with Client(connection=connection) as client:
                await client.nodes.list()
                me = await client.accounts.myself()
        assert me.expires_at is not None
        assert told == [me.expires_at.isoformat()] * 2
        result = await muster(fleet, secret, "nodes")
        assert result.exit_code == 0
        assert result.stderr.count("warning: your token ends at ") == 1
        assert "your token" not in result.stdout


async def test_the_list_tells_ends_scopes_and_last_uses(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        secret, token = await admin.tokens.create(access=Access.MEMBER, projects=["default"])
        before = {each.id: each.used_at for each in await admin.tokens.list()}
        async with fleet.client(secret) as narrow:
            await narrow.accounts.myself()
        after = {each.id: each.used_at for each in await admin.tokens.list()}
        assert (before[token.id], after[token.id] is not None) == (None, True)
        table = (await muster(fleet, fleet.admin_token, "tokens", "list")).stdout
        assert "LAST USED" in table
        assert "member" in table
        document = (await muster(fleet, fleet.admin_token, "tokens", "list", "-o", "json")).stdout
        assert all(key in document for key in ('"access": "member"', '"projects"', '"used_at"', '"expires_at"'))


async def test_pruning_revokes_what_nobody_uses_and_forgets_what_has_ended(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        _, unused = await admin.tokens.create(note="unused")
        _, over = await admin.tokens.create(note="over")
        await admin.tokens.revoke(over.id)
        refused = await muster(fleet, fleet.admin_token, "tokens", "prune", "--unused", "1ms")
        assert (refused.exit_code, "unused" in refused.stderr) == (1, True)
        assert {each.id for each in await admin.tokens.list()} >= {unused.id, over.id}
        done = await muster(fleet, fleet.admin_token, "tokens", "prune", "--unused", "1ms", "--yes")
        assert done.stdout == "1 tokens revoked, 1 forgotten\n"
        left = {each.id: each for each in await admin.tokens.list()}
        assert over.id not in left
        assert left[unused.id].revoked_at is not None
        own = (await admin.accounts.myself()).token
        assert left[own].revoked_at is None
        with pytest.raises(ConflictError, match="is in use"):
            await admin.tokens.prune([own])
        assert "tokens.prune" in {entry.what for entry in await admin.audit.list()}
