"""An identity provider that says whatever a test wants, byte by byte."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from coordinator.logins.provider import Provider
from coordinator.logins.settings import GroupGrant, LoginSettings
from coordinator.logins.web import Web
from muster.domain.fleet.access import Access

DEVICE = {"device_code": "d-secret", "user_code": "ABCD-EFGH", "expires_in": 600, "interval": 5}
RULE = GroupGrant(group="a", project="default", access=Access.MEMBER)


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer that is not JSON: a head, and a body that may never end."""

    head: str
    body: bytes = b""
    endless: bool = False


@dataclass(kw_only=True)
class Hostile:
    """Where it answers, what it says, and what it was asked."""

    issuer: str = ""
    answers: dict[str, object] = field(default_factory=dict)
    """Answers by path; a list is said one after the other, a pair is a status and a body, None is silence."""
    asked: list[tuple[str, dict[str, str], dict[str, str]]] = field(default_factory=list)
    """Path, form and headers."""

    def described(self, **changed: object) -> dict[str, object]:
        """What it says that it serves."""
        said = {
            "issuer": self.issuer,
            "device_authorization_endpoint": f"{self.issuer}/device",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/me",
        }
        return {name: value for name, value in {**said, **changed}.items() if value is not None}

    def well_behaved(self) -> None:
        """From now on it says what the standards want, up to the token."""
        self.answers["/.well-known/openid-configuration"] = self.described()
        self.answers["/device"] = {**DEVICE, "verification_uri": f"{self.issuer}/confirm"}
        self.answers["/token"] = (400, {"error": "authorization_pending"})

    def provider(self, **chosen: object) -> Provider:
        """The provider as a coordinator sees it that has little patience."""
        said: Mapping[str, Any] = {"client_id": "muster", "grants": (RULE,), **chosen}
        return Provider(LoginSettings(issuer=self.issuer, **said), Web(patience=1.0))


@asynccontextmanager
async def hostile() -> AsyncIterator[Hostile]:
    """Serve until the context ends."""
    told = Hostile()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _answer(told, reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    told.issuer = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    told.well_behaved()
    try:
        yield told
    finally:
        server.close()


async def _answer(told: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    path = first.split()[1]
    told.asked.append((path, dict(parse_qsl(body.decode())), headers))
    said = told.answers.get(path, (404, {}))
    if isinstance(said, list):
        said = said.pop(0) if len(said) > 1 else said[0]
    if said is None:
        await reader.read()  # until the other side has had enough
    elif isinstance(said, Raw):
        await _write_raw(said, writer)
    else:
        status, text = said if isinstance(said, tuple) else (200, said)
        content = text if isinstance(text, bytes) else json.dumps(text).encode()
        writer.write(f"HTTP/1.1 {status} x\r\ncontent-length: {len(content)}\r\n\r\n".encode() + content)
        await writer.drain()


async def _write_raw(said: Raw, writer: asyncio.StreamWriter) -> None:
    writer.write(said.head.encode() + said.body)
    await writer.drain()
    while said.endless:
        writer.write(said.body)
        await writer.drain()
        await asyncio.sleep(0)
