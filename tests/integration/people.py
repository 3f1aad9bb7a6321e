"""A coordinator that lets people in whom an identity provider knows, and what their groups give them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from coordinator.logins.settings import GroupGrant, LoginSettings
from coordinator.service.trust.sessions import ConsoleKnown
from muster.domain.fleet.access import EVERYWHERE, Access
from tests.integration.identity_provider import CLIENT_ID, CLIENT_SECRET, CONSOLE, IdentityProvider
from tests.integration.secured import Secured, secured

GRANTS = (
    GroupGrant(group="vision", project="vision", access=Access.MEMBER),
    GroupGrant(group="platform/admins", project=EVERYWHERE, access=Access.ADMIN),
    GroupGrant(group="nowhere", project="no-such-project", access=Access.ADMIN),
)


def settings(provider: IdentityProvider, directory: Path, **chosen: object) -> LoginSettings:
    directory.mkdir(exist_ok=True)
    secret = directory / "client-secret"
    secret.write_text(CLIENT_SECRET + "\n")
    said: dict[str, Any] = {"client_secret_file": secret, "grants": GRANTS, "ca_file": provider.ca_file, **chosen}
    return LoginSettings(issuer=provider.issuer, client_id=CLIENT_ID, **said)


@asynccontextmanager
async def served(provider: IdentityProvider, directory: Path, **chosen: object) -> AsyncIterator[Secured]:
    login = settings(provider, directory, **chosen)
    async with secured(directory, login=login, console=ConsoleKnown(url=CONSOLE)) as fleet:
        async with fleet.client() as admin:
            await admin.projects.add("vision")
        yield fleet
