"""What an identity provider says over HTTP; the only module of the coordinator that knows the library for it.

The provider is somebody else's program, so that every answer has a limit in time and in size, is taken only over a
connection that nobody else can read, and is nothing but a JSON object.
"""

import asyncio
import base64
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote_plus

import aiohttp

from coordinator.logins.said import Json, shown
from coordinator.logins.settings import permitted_url
from muster.domain.errors import ConflictError, MusterError

PROVIDER_PATIENCE = 10.0
"""Seconds for one answer."""
LARGEST_PROVIDER_ANSWER = 256 * 1024
"""Bytes of one answer; those of the large providers have a few thousand."""


class ProviderError(ConflictError):
    """The identity provider does not answer, or not as the standards have it; the message names it and the cause."""


class UnreachableError(ProviderError):
    """The identity provider does not answer now; later it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What came back."""

    status: int
    said: Json = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether it is what was asked for."""
        return self.status == HTTPStatus.OK

    @property
    def error(self) -> str:
        """The code of the error, as OAuth names them; a bare status where there is none."""
        named = self.said.get("error")
        return shown(named) if isinstance(named, str) and named else f"status {self.status}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a question is asked with."""

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """How HTTP says it."""
        if self.bearer:
            return {"Authorization": f"Bearer {self.bearer}"}
        if not self.client_secret:
            return {}
        pair = f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


NO_PROOF = Proof()


class Web:
    """Asks one provider; every question has a connection of its own, as there are few."""

    def __init__(self, ca_file: Path | None = None, *, patience: float = PROVIDER_PATIENCE) -> None:
        self._trusted = _trusted(ca_file)
        self._patience = patience

    async def get(self, url: str, proof: Proof = NO_PROOF) -> HttpAnswer:
        """The answer to a question without a body; raises ProviderError where there is none."""
        return await self._ask("GET", url, None, proof)

    async def post(self, url: str, form: Mapping[str, str], proof: Proof = NO_PROOF) -> HttpAnswer:
        """The answer to a form; raises ProviderError where there is none."""
        return await self._ask("POST", url, form, proof)

    async def _ask(self, method: str, url: str, form: Mapping[str, str] | None, proof: Proof) -> HttpAnswer:
        if not permitted_url(url):
            raise ProviderError(f"will not ask {shown(url)}: only https is encrypted")
        try:
            async with asyncio.timeout(self._patience):
                return await self._exchange(method, url, form, proof)
        except TimeoutError:
            raise UnreachableError(f"the identity provider did not answer within {self._patience:g} s: {url}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UnreachableError(f"the identity provider does not answer: {url}: {shown(str(error))}") from error

    async def _exchange(self, method: str, url: str, form: Mapping[str, str] | None, proof: Proof) -> HttpAnswer:
        # Uncompressed: a small answer that unfolds into a huge one is not even looked at.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", **proof.headers}
        connector = aiohttp.TCPConnector(ssl=self._trusted, force_close=True)
        async with (
            aiohttp.ClientSession(
                connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
            ) as http,
            http.request(method, url, data=form, headers=headers, allow_redirects=False) as response,
        ):
            if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise UnreachableError(f"the identity provider does not answer: {url}: status {response.status}")
            return HttpAnswer(status=response.status, said=_object(await _limited(response), response.status, url))


async def _limited(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > LARGEST_PROVIDER_ANSWER:
            raise ProviderError(
                f"{response.url} says more than {LARGEST_PROVIDER_ANSWER // 1024} KiB, which no provider needs"
            )
    return bytes(body)


def _object(body: bytes, status: int, url: str) -> Json:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict):
        return said
    if status != HTTPStatus.OK:
        return {}
    raise ProviderError(f"{url} does not answer with a JSON object; is it an identity provider?")


def _trusted(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise MusterError(f"cannot read the authorities in {ca_file}: {error}") from error
