"""Events by HTTP: to addresses that were looked up once and checked, without redirects, and not for long."""

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import (
    ClientConnectorCertificateError,
    ClientError,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult

from console.events.addresses import AllowedPlaces
from console.events.answer import TargetAnswer
from console.events.believed import believing

ANSWERED_WITHIN = 10.0
"""Seconds in which a target takes an event."""
MOST_ANSWER = 1 << 20
"""Bytes of an answer that are read, so that its connection ends well; what they say is of no interest."""
_GONE = 410


class WebTargets:
    """The way to targets that take HTTP."""

    def __init__(
        self, allowed: AllowedPlaces, authority: Path | None = None, patience: float = ANSWERED_WITHIN
    ) -> None:
        """`authority`: a file of certificates that are believed beside those of the system."""
        self._allowed = allowed
        self._patience = patience
        self._trusted = believing(authority)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> TargetAnswer:
        """What a target says to this body."""
        try:
            async with asyncio.timeout(self._patience):
                return await self._post(url, headers, body)
        except TimeoutError:
            return TargetAnswer(taken=False, told=f"no answer within {self._patience:g} s")
        except (ClientError, OSError, ValueError) as error:
            return TargetAnswer(taken=False, told=_reason(error))

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> TargetAnswer:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [(family, place[0]) for family, _, _, _, place in found]
        allowed = [each for each in addresses if self._allowed.may_reach(host, str(each[1]))]
        if not allowed:
            told = f"{host} is at {addresses[0][1]}, which is not on the open internet and not allowed"
            return TargetAnswer(taken=False, told=told)
        if parts.scheme == "http" and not self._allowed.lists(host):
            return TargetAnswer(taken=False, told="plain http is only for hosts that `allow` in [web] names")
        connector = TCPConnector(resolver=_Pinned(allowed), ssl=self._trusted, use_dns_cache=False, force_close=True)
        async with (
            ClientSession(connector=connector, timeout=ClientTimeout(), auto_decompress=False) as session,
            session.post(url, data=body, headers=headers, allow_redirects=False) as answer,
        ):
            read = 0
            async for piece in answer.content.iter_any():
                read += len(piece)
                if read > MOST_ANSWER:
                    break
            return _judged(answer.status, answer.reason or "")


class _Pinned(AbstractResolver):
    """Knows one host: the addresses that were checked, so that a second look cannot find others."""

    def __init__(self, addresses: Sequence[tuple[int, object]]) -> None:
        self._addresses = addresses

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - both kinds were looked up
    ) -> list[ResolveResult]:
        """The addresses that were checked."""
        return [
            ResolveResult(
                hostname=host, host=str(address), port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST
            )
            for kind, address in self._addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""


def _judged(status: int, reason: str) -> TargetAnswer:
    told = f"{status} {reason}".strip()
    if status // 100 == 3:  # noqa: PLR2004 - the class of redirects
        return TargetAnswer(taken=False, told=f"{told}; redirects are not followed", status=status)
    taken = status // 100 == 2  # noqa: PLR2004 - all that went well
    return TargetAnswer(taken=taken, told=told, status=status, gone=status == _GONE)


def _reason(error: Exception) -> str:
    """What went wrong, without the address that may be a secret."""
    match error:
        case ssl.SSLCertVerificationError() | ClientConnectorCertificateError():
            return "its certificate is not believed"
        case ssl.SSLError() | ClientSSLError():
            return "TLS failed"
        case socket.gaierror():
            return "its name is not known"
        case ClientError() | ConnectionError():
            return type(error).__name__.removesuffix("Error")
        case OSError():
            return error.strerror or type(error).__name__
        case _:
            return type(error).__name__
