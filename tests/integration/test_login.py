"""People log in through a real identity provider."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from coordinator.clock import wall_time
from coordinator.logins.settings import GroupGrant
from muster.client.client import Client
from muster.domain.errors import ConflictError, ExhaustedError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access, AccountKind
from muster.domain.fleet.login import PendingLogin
from muster.rpc.channel import Credentials
from muster.trust.certificates import issue_server, make_authority
from tests.integration.identity_provider import CLIENT_SECRET, IdentityProvider, identity_provider
from tests.integration.people import served
from tests.integration.secured import Secured, secured


def stranger(fleet: Secured) -> Client:
    return Client(fleet.doors.clients, Credentials(authority=fleet.authority.certificate), timeout=30)


async def confirmed(provider: IdentityProvider, login: PendingLogin, subject: str) -> None:
    await asyncio.to_thread(provider.confirm, subject, login.verification_uri_complete)


async def until_it_ends(client: Client, login: PendingLogin) -> None:
    """Ask again and again; what ends it is raised."""
    async with asyncio.timeout(20):
        while isinstance(await client.logins.finish(login), timedelta):  # noqa: ASYNC110 - nobody tells when
            await asyncio.sleep(0.2)


async def log_in(fleet: Secured, provider: IdentityProvider, subject: str) -> str:
    """The token of a person who has confirmed."""
    async with stranger(fleet) as client:
        login = await client.logins.start()
        await confirmed(provider, login, subject)
        outcome = await client.logins.finish(login)
    assert not isinstance(outcome, timedelta)
    fleet.secrets.append(outcome[0])
    return outcome[0]


async def test_a_person_logs_in_and_may_what_his_groups_say(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path, ttl=timedelta(hours=1)) as fleet:
        before = wall_time()
        async with fleet.client(await log_in(fleet, provider, "p-ada")) as ada:
            myself = await ada.accounts.myself()
        assert (myself.name, myself.kind, myself.grants) == ("ada", "user", {"vision": Access.MEMBER})
        assert myself.identity == f"{provider.issuer}|p-ada"
        assert myself.expires_at is not None
        assert before + timedelta(hours=1) <= myself.expires_at <= wall_time() + timedelta(hours=1)
        async with fleet.client() as admin:
            entries = [entry for entry in await admin.audit.list() if entry.what == "logins.finish"]
            assert [(entry.who, entry.target) for entry in entries] == [("ada", "ada")]
            assert f"of {provider.issuer}|p-ada: member for vision" in entries[0].result
            account = next(each for each in await admin.accounts.list() if each.name == "ada")
            assert account.identity == f"{provider.issuer}|p-ada"


async def test_who_has_not_confirmed_waits_and_is_asked_for_no_more_often_than_the_provider_wants(
    provider: IdentityProvider, tmp_path: Path
) -> None:
    async with served(provider, tmp_path) as fleet, stranger(fleet) as client:
        login = await client.logins.start()
        assert login.interval == timedelta(seconds=5)
        assert await client.logins.finish(login) == timedelta(seconds=5)
        await confirmed(provider, login, "p-ada")
        assert await client.logins.finish(login) == timedelta(seconds=5)  # the provider was not asked: it would tell


async def test_access_follows_the_groups_at_each_login(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet:
        old = await log_in(fleet, provider, "p-grace")
        async with fleet.client(old) as grace:
            assert (await grace.accounts.myself()).grants == {"vision": Access.MEMBER, EVERYWHERE: Access.ADMIN}
            provider.change("p-grace", groups=["vision"], preferred_username="hopper")
            async with fleet.client(await log_in(fleet, provider, "p-grace")) as again:
                assert (await again.accounts.myself()).name == "grace"  # whatever she is called there now
            assert (await grace.accounts.myself()).grants == {"vision": Access.MEMBER}
            with pytest.raises(PermissionDeniedError, match="it needs admin access"):
                await grace.accounts.list()
            provider.change("p-grace", groups=["chess"])
            with pytest.raises(PermissionDeniedError, match="your groups there are chess; ask whoever runs this fleet"):
                await log_in(fleet, provider, "p-grace")
            assert (await grace.accounts.myself()).grants == {}


async def test_groups_that_give_nothing_make_no_account(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet, fleet.client() as admin:
        with pytest.raises(PermissionDeniedError, match="it lists no groups for you"):
            await log_in(fleet, provider, "p-nobody")
        provider.change("p-nobody", groups=["nowhere"])
        with pytest.raises(PermissionDeniedError, match="your groups there are nowhere"):
            await log_in(fleet, provider, "p-nobody")
        assert [account.name for account in await admin.accounts.list()] == ["admin"]
        refused = [entry for entry in await admin.audit.list() if entry.what == "logins.finish"]
        assert {entry.target for entry in refused} == {f"nobody ({provider.issuer}|p-nobody)"}
        assert all("gives you no access here" in entry.result for entry in refused)


async def test_nobody_becomes_an_account_by_choosing_its_name(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet, fleet.client() as admin:
        with pytest.raises(ConflictError, match=r"there is an account admin already, .* not bound to your login"):
            await log_in(fleet, provider, "p-mallory")
        await log_in(fleet, provider, "p-ada")
        provider.change("p-mallory", preferred_username="ADA")
        with pytest.raises(ConflictError, match="make room with `muster users remove ada`"):
            await log_in(fleet, provider, "p-mallory")
        await admin.accounts.add("robot", AccountKind.SERVICE, {"vision": Access.MEMBER})
        provider.change("p-mallory", preferred_username="robot")
        with pytest.raises(ConflictError, match="make room with `muster accounts remove robot`"):
            await log_in(fleet, provider, "p-mallory")
        provider.change("p-mallory", preferred_username="x y")
        with pytest.raises(PermissionDeniedError, match="choose another claim with --oidc-name-claim"):
            await log_in(fleet, provider, "p-mallory")
        await admin.accounts.remove("ada", AccountKind.USER)
        provider.change("p-mallory", preferred_username="ada")
        await log_in(fleet, provider, "p-mallory")
        assert [(a.name, a.identity) for a in await admin.accounts.list() if a.identity] == [
            ("ada", f"{provider.issuer}|p-mallory")
        ]


async def test_a_login_that_is_refused_or_not_confirmed_in_time_ends(tmp_path: Path) -> None:
    with identity_provider(device_ttl=2) as provider:
        async with served(provider, tmp_path) as fleet, stranger(fleet) as client:
            login = await client.logins.start()
            await asyncio.to_thread(provider.refuse, "p-ada", login.verification_uri_complete)
            with pytest.raises(PermissionDeniedError, match="was refused at the identity provider"):
                await client.logins.finish(login)
            with pytest.raises(UnknownNameError, match="begin anew with `muster login`"):
                await client.logins.finish(login)
            late = await client.logins.start()
            with pytest.raises(PermissionDeniedError, match="was not confirmed in time"):
                await until_it_ends(client, late)


async def test_rotated_keys_are_known_at_the_next_login(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet, stranger(fleet) as client:
        await log_in(fleet, provider, "p-ada")
        login = await client.logins.start()
        provider.rotate()
        await confirmed(provider, login, "p-ada")
        assert not isinstance(await client.logins.finish(login), timedelta)


@pytest.mark.parametrize(
    ("served_as", "secret"),
    [({"algorithm": "ES256"}, True), ({"claims_in_token": True}, True), ({"client_secret": None}, False)],
    ids=str,
)
async def test_other_ways_to_run_a_provider(served_as: dict[str, object], secret: bool, tmp_path: Path) -> None:
    with identity_provider(None, None, None, **served_as) as provider:
        chosen = {} if secret else {"client_secret_file": None}
        async with (
            served(provider, tmp_path, **chosen) as fleet,
            fleet.client(await log_in(fleet, provider, "p-ada")) as ada,
        ):
            assert (await ada.accounts.myself()).grants == {"vision": Access.MEMBER}


async def test_a_provider_with_a_private_authority_is_believed_by_who_names_it(tmp_path: Path) -> None:
    authority = make_authority(wall_time())
    server = issue_server(authority, ["127.0.0.1"], wall_time())
    files = {name: tmp_path / name for name in ("certificate", "key", "ca_file")}
    for name, content in zip(files, (server.certificate, server.key, authority.certificate), strict=True):
        files[name].write_bytes(content)
    with identity_provider(**files) as provider:
        async with served(provider, tmp_path) as fleet, fleet.client(await log_in(fleet, provider, "p-ada")) as ada:
            assert (await ada.accounts.myself()).name == "ada"
        async with served(provider, tmp_path / "unbelieving", ca_file=None) as fleet, stranger(fleet) as client:
            with pytest.raises(
                ConflictError, match=r"the identity provider does not answer: .*CERTIFICATE_VERIFY_FAILED"
            ):
                await client.logins.start()


async def test_other_claims_may_hold_name_and_groups(provider: IdentityProvider, tmp_path: Path) -> None:
    rule = GroupGrant(group="ada@example.org", project=EVERYWHERE, access=Access.VIEWER)
    chosen = {"name_claims": ("email",), "groups_claim": "email", "grants": (rule,)}
    async with served(provider, tmp_path, **chosen) as fleet:
        async with fleet.client(await log_in(fleet, provider, "p-ada")) as ada:
            myself = await ada.accounts.myself()
        assert (myself.name, myself.grants) == ("ada@example.org", {EVERYWHERE: Access.VIEWER})
        provider.change("p-ada", email_verified=False)
        with pytest.raises(PermissionDeniedError, match="does not say what you are called"):
            await log_in(fleet, provider, "p-ada")


async def test_what_an_admin_gives_by_hand_follows_from_groups_instead(
    provider: IdentityProvider, tmp_path: Path
) -> None:
    async with served(provider, tmp_path) as fleet, fleet.client() as admin:
        await log_in(fleet, provider, "p-ada")
        with pytest.raises(ConflictError, match="what it may follows from its groups there"):
            await admin.accounts.grant("ada", EVERYWHERE, Access.ADMIN)
        assert (await admin.accounts.grant("ada", "vision", None)).grants == {}
        await log_in(fleet, provider, "p-ada")
        assert next(a.grants for a in await admin.accounts.list() if a.name == "ada") == {"vision": Access.MEMBER}


async def test_no_token_that_a_person_makes_outlives_the_login(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet, fleet.client(await log_in(fleet, provider, "p-grace")) as grace:
        myself = await grace.accounts.myself()
        assert myself.grants[EVERYWHERE] is Access.ADMIN
        _, token = await grace.tokens.create(ttl=timedelta(days=30))
        assert token.expires_at == myself.expires_at


async def test_tokens_of_earlier_logins_go_once_they_have_ended(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path, ttl=timedelta(milliseconds=1)) as fleet, fleet.client() as admin:
        for _ in range(3):
            await log_in(fleet, provider, "p-ada")
        assert len([token for token in await admin.tokens.list() if token.account == "ada"]) == 1


async def test_one_address_fills_the_desk_only_so_far(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet, stranger(fleet) as client:
        outcomes = await asyncio.gather(*(client.logins.start() for _ in range(25)), return_exceptions=True)
        begun = [each for each in outcomes if isinstance(each, PendingLogin)]
        assert len(begun) == 20
        assert all(isinstance(each, ExhaustedError) for each in outcomes if not isinstance(each, PendingLogin))
        assert len({login.secret for login in begun} | {login.user_code for login in begun}) == 40
        await confirmed(provider, begun[0], "p-ada")
        assert not isinstance(await client.logins.finish(begun[0]), timedelta)
        assert isinstance(await client.logins.start(), PendingLogin)


async def test_no_secret_of_a_login_is_kept_anywhere(provider: IdentityProvider, tmp_path: Path) -> None:
    async with served(provider, tmp_path) as fleet, stranger(fleet) as client:
        pending = await client.logins.start()
        fleet.secrets += [pending.secret, await log_in(fleet, provider, "p-ada")]
        assert pending.secret not in repr(pending)
    for file in [file for file in tmp_path.rglob("*") if file.is_file()]:  # noqa: ASYNC240 - what only takes a moment
        content = file.read_bytes()
        assert [secret for secret in fleet.secrets if secret.encode() in content] == []
        assert file.name == "client-secret" or CLIENT_SECRET.encode() not in content


async def test_a_coordinator_without_a_provider_says_so(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, stranger(fleet) as client:
        with pytest.raises(UnknownNameError, match="knows no identity provider; log in with a token: --token-file"):
            await client.logins.start()
