"""How the authority of a fleet is learned by who can verify nobody yet: a stranger says it, a fingerprint proves it."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import grpc
import grpc.aio

from muster.domain.errors import PermissionDeniedError, UnavailableError
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.status import error_from
from muster.rpc.v1 import trust_pb2, trust_pb2_grpc
from muster.trust.identity import CertificateError

PATIENCE = 10.0
"""Seconds for one call."""


async def read_here(certificate: bytes) -> str:
    """The fingerprint of a certificate's key; raises CertificateError."""
    from muster.trust.certificates import fingerprint  # noqa: PLC0415 - cryptography, which agents do without

    return fingerprint(certificate)


async def pinned_authority(
    address: str, is_wanted: Callable[[str], bool], fingerprint: Callable[[bytes], Awaitable[str]] = read_here
) -> bytes:
    """The authority of whoever answers, if its fingerprint is wanted; PermissionDeniedError otherwise.

    `fingerprint` reads a certificate, as `read_here` does.
    """
    host, _, port = address.rpartition(":")
    try:
        shown = await asyncio.to_thread(ssl.get_server_certificate, (host.strip("[]"), int(port)), timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise UnavailableError(f"no coordinator with TLS answers at {address}: {error}") from error
    # Believed for this one question, whose answer is checked.
    async with open_channel(address, Credentials(authority=shown.encode())) as channel:
        stub: trust_pb2_grpc.JoinServiceAsyncStub = trust_pb2_grpc.JoinServiceStub(channel)
        try:
            answer = await stub.Authority(trust_pb2.AuthorityRequest(), timeout=PATIENCE)
        except grpc.aio.AioRpcError as error:
            raise error_from(error.code(), error.details() or "", address=address) from error
    try:
        found = await fingerprint(answer.certificate)
    except CertificateError as error:
        raise PermissionDeniedError(f"who answers at {address} shows no authority: {error}") from error
    if not is_wanted(found):
        raise PermissionDeniedError(
            f"who answers at {address} is not the coordinator that is meant: its authority has the fingerprint "
            f"sha256:{found}",
        )
    return answer.certificate
