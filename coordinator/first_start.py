"""What a first start makes: the fleet's authority, the first admin with a token; and what every start renews."""

import asyncio
import logging
import secrets
import socket
from collections.abc import Container, Iterator
from datetime import datetime
from pathlib import Path

from coordinator.clock import wall_time
from coordinator.fleet.put_aside import put_aside
from coordinator.settings import CoordinatorSettings
from coordinator.trust.authority import FleetAuthority, load_or_make
from coordinator.trust.registry import ADMIN, Registry
from coordinator.trust.rotation import RotationFile
from coordinator.trust.secrets.secrets import Secrets, SecretStore, forget_unreadable, rotate_key
from muster.domain.errors import MusterError
from muster.domain.fleet.access import (
    EVERYWHERE,
    PERSON_TOKEN_LIFE,
    Access,
    Account,
    AccountKind,
    AuditEntry,
    IssuedToken,
)
from muster.trust.certificates import facts
from muster.trust.files import read_secret, write_private
from muster.trust.tokens import ApiToken, new_api_token, parse_api_token

log = logging.getLogger(__name__)

_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not bound
_LONGEST_SLEEP = 86_400.0
_RENEW_AGAIN = 600.0


async def prepared(settings: CoordinatorSettings, registry: Registry) -> FleetAuthority:
    """The authority, with an admin who can log in; says how on the first start."""
    now = wall_time()
    identity = await asyncio.to_thread(load_or_make, settings.state / "trust", now)
    names = await asyncio.to_thread(lambda: tuple(_names(settings)))
    authority = FleetAuthority(identity, names, now, RotationFile(settings.state / "trust"))
    file = settings.state / "admin-token"
    if not registry.accounts:
        await _make_admin(registry, file)
        _tell(settings, authority, file)
    elif settings.init:
        await _renew_admin_token(registry, file)
        _tell(settings, authority, file)
    return authority


async def renew_server(authority: FleetAuthority) -> None:
    """Have the coordinator's own certificate renewed at half of its life, until cancelled."""
    while True:
        due = facts(authority.server.certificate).half_life
        left = (due - wall_time()).total_seconds()
        if left <= 0:
            try:
                authority.renew_server(wall_time())
            except (OSError, MusterError) as error:  # a full disk, say; half of its life is left to try
                log.warning("the coordinator's certificate cannot be renewed yet", extra={"cause": str(error)})
                await asyncio.sleep(_RENEW_AGAIN)
        else:
            # A clock that is set meanwhile is noticed within a day.
            await asyncio.sleep(min(left, _LONGEST_SLEEP))


def opened_secrets(settings: CoordinatorSettings, store: SecretStore, projects: Container[str]) -> Secrets:
    """The secrets of this coordinator, after what its settings say of their key; a change is in the audit log."""
    file = settings.state / "trust" / "secrets.key"
    what = f"secrets key: {settings.secrets_key}"
    done = AuditEntry(at=wall_time(), who="", what=what, target="", origin="", result="ok")
    if settings.secrets_key == "rotate":
        rotate_key(store, file, done)
    elif settings.secrets_key == "replace":
        for lost in forget_unreadable(store, file, done):
            log.warning("secret forgotten, its key is lost", extra={"project": lost.project, "secret": lost.name})
    return Secrets.open(store, file, projects)


def local_token(state: Path) -> str:
    """The token of `muster up`, in a file for this user only; kept, so that who waits goes on after a restart."""
    file = state / "local-token"
    if not file.exists():
        write_private(file, f"{secrets.token_hex(32)}\n".encode())
    return read_secret(file)


async def _make_admin(registry: Registry, file: Path) -> None:
    now, secret = wall_time(), new_api_token()
    await asyncio.to_thread(put_aside, file.parent, [file], now)
    # The file first: a token that nobody has is harmless, an admin without a token locks everybody out.
    await asyncio.to_thread(write_private, file, f"{secret}\n".encode())
    admin = Account(name=ADMIN, kind=AccountKind.USER, created_at=now, grants={EVERYWHERE: Access.ADMIN})
    token = _admin_token(secret, "made at the first start", now)
    made = AuditEntry(at=now, who="", what="first start", target=ADMIN, origin="", result="ok")
    await registry.add_first_admin(admin, secret, token, made)


async def _renew_admin_token(registry: Registry, file: Path) -> None:
    """Make the token of the first account anew if the one in the file has ended.

    A token that was revoked stays so, and so does the access of an account that was taken away.
    """
    admin, now = registry.accounts.get(ADMIN), wall_time()
    if admin is None or not await asyncio.to_thread(file.exists):
        return
    text = await asyncio.to_thread(read_secret, file)
    kept = registry.tokens.get(parse_api_token(text).id)
    if kept is not None and (kept.token.valid(now) or kept.token.revoked_at is not None):
        return
    secret = new_api_token()
    await asyncio.to_thread(write_private, file, f"{secret}\n".encode())
    made = AuditEntry(at=now, who="", what="init: new token", target=ADMIN, origin="", result="ok")
    await registry.add_token(secret, _admin_token(secret, "made by init", now), made)


def _admin_token(secret: ApiToken, note: str, now: datetime) -> IssuedToken:
    return IssuedToken(id=secret.id, account=ADMIN, note=note, created_at=now, expires_at=now + PERSON_TOKEN_LIFE)


def _tell(settings: CoordinatorSettings, authority: FleetAuthority, file: Path) -> None:
    host, _, port = settings.listen.rpartition(":")
    shown = settings.names[0] if settings.names else socket.gethostname() if host in _WILDCARDS else host
    print(  # noqa: T201 - for the person who starts it
        f"authority of this fleet: sha256:{authority.fingerprint}\n"
        f"log in as {ADMIN}:       muster login {shown}:{port} --authority sha256:{authority.fingerprint} "
        f"--token-file {file}\n"
        f"then, for each node:     muster nodes token create",
        flush=True,
    )


def _names(settings: CoordinatorSettings) -> Iterator[str]:
    yield from settings.names
    host = settings.listen.rpartition(":")[0].strip("[]")
    yield from ("localhost", "127.0.0.1")
    own = socket.gethostname()
    yield own
    if host not in _WILDCARDS:
        yield host
        return
    try:
        found = socket.getaddrinfo(own, None, type=socket.SOCK_STREAM)
    except OSError:
        return
    for *_, address in found:
        yield str(address[0]).partition("%")[0]
