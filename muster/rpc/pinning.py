"""How the authority of a fleet is learned by who can verify nobody yet: a stranger says it, a fingerprint proves it."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Protocol

import grpc
import grpc.aio

from muster.domain.errors import PermissionDeniedError
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.status import error_from
from muster.rpc.v1 import trust_pb2, trust_pb2_grpc
from muster.trust.identity import CertificateError

PINNING_PATIENCE = 10.0
"""Seconds for one call."""


class Reader(Protocol):
    """Looks at certificates."""

    async def shown(self, address: str) -> bytes:
        """The certificate of whoever answers with TLS at `host:port`; raises UnavailableError."""
        ...

    async def fingerprint(self, certificate: bytes) -> str:
        """The fingerprint of a certificate's key; raises CertificateError."""
        ...

    async def handed_over(self, statement: bytes, authority: bytes, now: datetime) -> str:
        """The fingerprint of who succeeds an authority by its own statement; raises CertificateError."""
        ...


class ReaderHere:
    """Does so in this program, with libraries that agents do without."""

    async def shown(self, address: str) -> bytes:
        """The certificate of whoever answers."""
        from muster.trust.handshake import shown_at  # noqa: PLC0415 - cryptography only where an authority is met

        return await asyncio.to_thread(shown_at, address)

    async def fingerprint(self, certificate: bytes) -> str:
        """The fingerprint of a certificate's key."""
        from muster.trust.certificates import fingerprint  # noqa: PLC0415 - cryptography only where an authority is met

        return fingerprint(certificate)

    async def handed_over(self, statement: bytes, authority: bytes, now: datetime) -> str:
        """The fingerprint of who succeeds an authority by its own statement."""
        from muster.trust.certificates import handed_over  # noqa: PLC0415 - cryptography only where an authority is met

        return handed_over(statement, authority, now)


async def pinned_authority(address: str, is_wanted: Callable[[str], bool], reader: Reader | None = None) -> bytes:
    """The authority of whoever answers, if its fingerprint is wanted; PermissionDeniedError otherwise.

    It also counts if an authority whose fingerprint is wanted has handed over to it.
    """
    reader = reader or ReaderHere()
    shown = await reader.shown(address)
    # Believed for this one question, whose answer is checked.
    async with open_channel(address, Credentials(authority=shown)) as channel:
        stub: trust_pb2_grpc.JoinServiceAsyncStub = trust_pb2_grpc.JoinServiceStub(channel)
        try:
            answer = await stub.Authority(trust_pb2.AuthorityRequest(), timeout=PINNING_PATIENCE)
        except grpc.aio.AioRpcError as error:
            raise error_from(error.code(), error.details() or "", address=address) from error
    try:
        found = await reader.fingerprint(answer.certificate)
    except CertificateError as error:
        raise PermissionDeniedError(f"who answers at {address} shows no authority: {error}") from error
    if not is_wanted(found) and not await _is_heir(found, answer.handovers, is_wanted, reader):
        raise PermissionDeniedError(
            f"who answers at {address} is not the coordinator that is meant: its authority has the fingerprint "
            f"sha256:{found}",
        )
    return answer.certificate


async def _is_heir(
    found: str, handovers: Iterable[trust_pb2.Handover], is_wanted: Callable[[str], bool], reader: Reader
) -> bool:
    """Whether statements of one authority after the other, oldest first, lead from a wanted one to the one found."""
    now, trusted = datetime.now(UTC), set[str]()
    for each in handovers:
        try:
            former = await reader.fingerprint(each.authority)
            if former in trusted or is_wanted(former):
                trusted.add(await reader.handed_over(each.statement, each.authority, now))
        except CertificateError:
            continue  # says nothing
    return found in trusted
