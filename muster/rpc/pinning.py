"""How the authority of a fleet is learned by who can verify nobody yet: a stranger says it, a fingerprint proves it."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import grpc
import grpc.aio

from muster.domain.errors import PermissionDeniedError
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.status import error_from
from muster.rpc.v1 import trust_pb2, trust_pb2_grpc
from muster.trust.identity import CertificateError

PATIENCE = 10.0
"""Seconds for one call."""


class Reader(Protocol):
    """Looks at certificates."""

    async def shown(self, address: str) -> bytes:
        """That of whoever answers with TLS at `host:port`; raises UnavailableError."""
        ...

    async def fingerprint(self, certificate: bytes) -> str:
        """Of a certificate's key; raises CertificateError."""
        ...


class ReaderHere:
    """Does so in this program, with libraries that agents do without."""

    async def shown(self, address: str) -> bytes:
        """That of whoever answers."""
        from muster.trust.handshake import shown_at  # noqa: PLC0415

        return await asyncio.to_thread(shown_at, address)

    async def fingerprint(self, certificate: bytes) -> str:
        """Of a certificate's key."""
        from muster.trust.certificates import fingerprint  # noqa: PLC0415

        return fingerprint(certificate)


async def pinned_authority(address: str, is_wanted: Callable[[str], bool], reader: Reader | None = None) -> bytes:
    """The authority of whoever answers, if its fingerprint is wanted; PermissionDeniedError otherwise."""
    reader = reader or ReaderHere()
    shown = await reader.shown(address)
    # Believed for this one question, whose answer is checked.
    async with open_channel(address, Credentials(authority=shown)) as channel:
        stub: trust_pb2_grpc.JoinServiceAsyncStub = trust_pb2_grpc.JoinServiceStub(channel)
        try:
            answer = await stub.Authority(trust_pb2.AuthorityRequest(), timeout=PATIENCE)
        except grpc.aio.AioRpcError as error:
            raise error_from(error.code(), error.details() or "", address=address) from error
    try:
        found = await reader.fingerprint(answer.certificate)
    except CertificateError as error:
        raise PermissionDeniedError(f"who answers at {address} shows no authority: {error}") from error
    if not is_wanted(found):
        raise PermissionDeniedError(
            f"who answers at {address} is not the coordinator that is meant: its authority has the fingerprint "
            f"sha256:{found}",
        )
    return answer.certificate
