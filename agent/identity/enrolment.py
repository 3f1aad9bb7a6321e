"""How a node joins a fleet and stays in it: its key, its certificate, and the renewal of the certificate.

In the state directory, readable by the agent's user only: `trust/key.pem` has the key, `trust/node.json` certificates,
authorities, and where agents are served. While a key changes, `key.pem` has both, so that an agent which is killed at
any moment finds the key of the certificate that it finds. No key leaves the node.
"""

import asyncio
import json
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import grpc
import grpc.aio

from agent.identity.certificates import Certificates
from muster.domain.errors import ExhaustedError, MusterError, PermissionDeniedError, UnavailableError
from muster.domain.ids import NodeId
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.pinning import pinned_authority
from muster.rpc.status import UNKNOWN_AUTHORITY, error_from
from muster.rpc.v1 import agents_pb2, agents_pb2_grpc, trust_pb2, trust_pb2_grpc
from muster.trust.files import write_private
from muster.trust.identity import CertificateError, CertificateFacts
from muster.trust.tokens import JoinToken, parse_join_token

log = logging.getLogger(__name__)

ENROLMENT_PATIENCE = 10.0
"""Seconds for one call."""
JOIN_PAUSE = 2.0
"""Seconds between tries while no coordinator answers, or too many nodes join at once."""
RENEWAL_LOOK_PAUSE = 4.0
LONGEST_LOOK_PAUSE = 60.0
"""Seconds between looks at where agents are served now, while nobody is there; with jitter, and they grow."""
LOOK_GROWTH = 1.5
RENEW_PAUSE = 30.0
"""Seconds between tries to renew; half a life of a certificate is left for them."""
LONGEST_RENEWAL_SLEEP = 300.0
"""Seconds after which the clock is looked at again, in case it was set."""
_KEY_END = b"-----END PRIVATE KEY-----\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What a node has once it has joined."""

    certificate: bytes
    key: bytes = field(repr=False)
    """The key of `certificate` and `peer`."""
    authority: bytes
    """Certificates of all authorities that count."""
    former: tuple[str, ...] = ()
    """Fingerprints of authorities that counted before; a join token of one of them says nothing new."""
    agents: str
    """`host:port` where agents are served."""
    peer: bytes = b""
    """The certificate that other nodes believe; empty where the coordinator that it joined gave none."""
    facts: CertificateFacts
    """What `certificate` says."""


class Enrolment:
    """A node and the fleet that it has joined, or is to join."""

    def __init__(self, state: Path, node: NodeId, coordinator: str) -> None:
        self._directory = state / "trust"
        self._node = node
        self._coordinator = coordinator
        self._joined: Membership | None = None
        self._asked = asyncio.Event()
        """Set when the coordinator wants the certificate to be renewed before it is due."""
        self._spread = 0.0
        self._keeping = asyncio.Lock()
        """Held while the files change; what is renewed and what has moved would undo each other."""

    @property
    def address(self) -> str:
        """`host:port` where agents are served, once it has joined."""
        return self._membership.agents

    def credentials(self) -> Credentials:
        """What the node shows, once it has joined."""
        joined = self._membership
        return Credentials(authority=joined.authority, certificate=joined.certificate, key=joined.key)

    def peer_credentials(self) -> Credentials:
        """What the node shows to other nodes; before it has a certificate for that, one that they do not believe."""
        joined = self._membership
        return Credentials(authority=joined.authority, certificate=joined.peer or joined.certificate, key=joined.key)

    @property
    def _membership(self) -> Membership:
        assert self._joined is not None, "`ensure` comes first"
        return self._joined

    async def ensure(self, token: str | None) -> None:
        """Join if need be; waits for a coordinator that does not answer, raises MusterError for one that refuses."""
        async with Certificates() as certificates:
            kept = await self._load(certificates)
            shown = parse_join_token(token) if token else None
            if kept is not None and kept.facts.node == self._node and kept.facts.not_after > utc_now():
                known = {*kept.former, *await certificates.fingerprints(kept.authority)}
                if shown is None or shown.authority in known:
                    self._joined = kept
                    return
                log.info("joining again, as the token is of an authority that is new here", extra={"node": self._node})
            if shown is None:
                raise PermissionDeniedError(_how_to_join(self._node, kept))
            key = await self._load_key(certificates) if kept is None else kept.key
            joined = await self._join_patiently(shown, key, certificates)
        await asyncio.to_thread(self._keep, joined)
        log.info("node joined the fleet", extra={"node": self._node, "agents": joined.agents})

    async def renew(self, renewed: Callable[[], None]) -> None:
        """Get the next certificate at half of the life of each, until cancelled; `renewed` is called each time."""
        early = not self._membership.peer  # what an older coordinator has not given, this one may
        while True:
            left = (self._membership.facts.half_life - utc_now()).total_seconds()
            if left > 0 and not early:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, LONGEST_RENEWAL_SLEEP)):
                        await self._asked.wait()
                if not self._asked.is_set():
                    continue
                await asyncio.sleep(random.uniform(0, self._spread))  # noqa: S311 - jitter, not a secret
            self._asked.clear()
            early = True  # until it has worked
            try:
                await self.renew_now()
            except MusterError as error:
                log.warning("the certificate cannot be renewed", extra={"node": self._node, "cause": str(error)})
                await asyncio.sleep(min(RENEW_PAUSE, self._life() / 20))
            else:
                early = False
                renewed()

    def renew_soon(self, spread: float) -> None:
        """Renew the certificate before it is due, after a random part of so many seconds."""
        self._spread = spread
        self._asked.set()

    async def follow(self, away: Callable[[], bool], moved: Callable[[], None]) -> None:
        """Find agents' door again when it is at another port than before, until cancelled.

        `away` says whether nobody is there, `moved` is called each time when it was found elsewhere.
        """
        pause = RENEWAL_LOOK_PAUSE
        while True:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            if not away():
                pause = RENEWAL_LOOK_PAUSE
                continue
            pause = min(pause * LOOK_GROWTH, LONGEST_LOOK_PAUSE)
            try:
                if await self.look():
                    moved()
            except PermissionDeniedError as error:
                log.warning("the coordinator cannot be believed", extra={"node": self._node, "cause": str(error)})
            except MusterError as error:
                log.info("cannot ask where agents are served", extra={"node": self._node, "cause": str(error)})

    async def look(self) -> bool:
        """Whether agents are served elsewhere than before, by the coordinator of this fleet; raises MusterError."""
        joined = self._membership
        async with open_channel(self._coordinator, Credentials(authority=joined.authority)) as channel:
            stub: trust_pb2_grpc.JoinServiceAsyncStub = trust_pb2_grpc.JoinServiceStub(channel)
            try:
                answer = await stub.Authority(trust_pb2.AuthorityRequest(), timeout=ENROLMENT_PATIENCE)
            except grpc.aio.AioRpcError as error:
                if UNKNOWN_AUTHORITY in (error.details() or ""):
                    raise PermissionDeniedError(_other_authority(self._node)) from error
                raise error_from(error.code(), error.details() or "", address=self._coordinator) from error
        agents = _beside(self._coordinator, answer.agents_port)
        if not answer.agents_port or agents == joined.agents:
            return False
        async with self._keeping:
            await asyncio.to_thread(self._keep, replace(self._membership, agents=agents))
        log.info("agents are served elsewhere now", extra={"node": self._node, "address": agents})
        return True

    async def renew_now(self) -> None:
        """Get the next certificate; raises MusterError."""
        joined = self._membership
        async with Certificates() as certificates, open_channel(joined.agents, self.credentials()) as channel:
            key = await certificates.new_key()
            request = agents_pb2.RenewRequest(request=await certificates.request(key, self._node))
            stub: agents_pb2_grpc.AgentServiceAsyncStub = agents_pb2_grpc.AgentServiceStub(channel)
            try:
                answer = await stub.Renew(request, timeout=ENROLMENT_PATIENCE)
            except grpc.aio.AioRpcError as error:
                raise error_from(error.code(), error.details() or "", address=joined.agents) from error
            authorities = answer.authorities or joined.authority
            said = await certificates.verify(answer.certificate, authorities, utc_now())
            former = joined.former
            if authorities != joined.authority:
                former = tuple({*former, *await certificates.fingerprints(joined.authority)})
        async with self._keeping:
            fresh = replace(
                self._membership,
                certificate=answer.certificate,
                key=key,
                authority=authorities,
                former=former,
                peer=answer.peer_certificate,
                facts=said,
            )
            await asyncio.to_thread(self._keep_with_key, fresh, joined.key)
        until = said.not_after.isoformat(timespec="seconds")
        log.info("certificate renewed", extra={"node": self._node, "until": until})

    def _life(self) -> float:
        said = self._membership.facts
        return (said.not_after - said.not_before).total_seconds()

    async def _join_patiently(self, token: JoinToken, key: bytes, certificates: Certificates) -> Membership:
        while True:
            try:
                return await _join(self._coordinator, token, self._node, key, certificates)
            except (UnavailableError, ExhaustedError) as error:
                log.warning("cannot join yet", extra={"node": self._node, "cause": str(error)})
                await asyncio.sleep(JOIN_PAUSE)

    @property
    def _key_file(self) -> Path:
        return self._directory / "key.pem"

    async def _load_key(self, certificates: Certificates) -> bytes:
        """The key with which the node is to join, made if there is none."""
        if not await asyncio.to_thread(self._key_file.exists):
            await asyncio.to_thread(self._directory.mkdir, mode=0o700, parents=True, exist_ok=True)
            await asyncio.to_thread(write_private, self._key_file, await certificates.new_key())
        first, end, _ = (await asyncio.to_thread(self._key_file.read_bytes)).partition(_KEY_END)
        return first + end

    async def _load_key_of(self, certificate: bytes, certificates: Certificates) -> bytes:
        """The key of a certificate; the others of a renewal that was interrupted are removed."""
        keys = await asyncio.to_thread(self._key_file.read_bytes)
        key = await certificates.key_among(keys, certificate)
        if key != keys:
            await asyncio.to_thread(write_private, self._key_file, key)
        return key

    async def _load(self, certificates: Certificates) -> Membership | None:
        file = self._directory / "node.json"
        if not await asyncio.to_thread(file.exists):
            return None
        try:
            kept = json.loads(await asyncio.to_thread(file.read_text))
            certificate = kept["certificate"].encode()
            return Membership(
                certificate=certificate,
                key=await self._load_key_of(certificate, certificates),
                authority=kept["authority"].encode(),
                former=tuple(kept.get("former", ())),
                agents=kept["agents"],
                peer=kept.get("peer", "").encode(),
                facts=await certificates.facts(certificate),
            )
        except CertificateError as error:
            raise MusterError(f"{error}; remove {file} and join anew with a token") from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            name = getattr(error, "filename", None) or file
            raise MusterError(f"{name} cannot be read; remove {file} and join anew with a token") from error

    def _keep_with_key(self, joined: Membership, former_key: bytes) -> None:
        """Keep a membership with another key than before; whenever this is interrupted, one of the two is whole."""
        write_private(self._key_file, joined.key + former_key)
        self._keep(joined)
        write_private(self._key_file, joined.key)

    def _keep(self, joined: Membership) -> None:
        kept = {
            "certificate": joined.certificate.decode(),
            "authority": joined.authority.decode(),
            "former": list(joined.former),
            "agents": joined.agents,
            "peer": joined.peer.decode(),
        }
        write_private(self._directory / "node.json", json.dumps(kept, indent=1).encode())
        self._joined = joined


async def join(coordinator: str, token: JoinToken, node: NodeId, key: bytes) -> Membership:
    """Join a fleet.

    Whoever answers is first asked for the fleet's authority, without being believed: the answer counts only if it has
    the fingerprint in the token. The token itself is sent to none but a coordinator which that authority has certified.
    """
    async with Certificates() as certificates:
        return await _join(coordinator, token, node, key, certificates)


async def _join(coordinator: str, token: JoinToken, node: NodeId, key: bytes, certificates: Certificates) -> Membership:
    authority = await pinned_authority(coordinator, lambda found: found == token.authority, certificates)
    request = trust_pb2.JoinRequest(token=str(token), node=node, request=await certificates.request(key, node))
    async with open_channel(coordinator, Credentials(authority=authority)) as channel:
        stub: trust_pb2_grpc.JoinServiceAsyncStub = trust_pb2_grpc.JoinServiceStub(channel)
        try:
            answer = await stub.Join(request, timeout=ENROLMENT_PATIENCE)
        except grpc.aio.AioRpcError as error:
            raise error_from(error.code(), error.details() or "", address=coordinator) from error
    authorities = answer.authorities or authority
    said = await certificates.verify(answer.certificate, authorities, utc_now())
    return Membership(
        certificate=answer.certificate,
        key=key,
        authority=authorities,
        agents=_beside(coordinator, answer.agents_port),
        peer=answer.peer_certificate,
        facts=said,
    )


def utc_now() -> datetime:
    """The node's clock."""
    return datetime.now(UTC)


def _beside(coordinator: str, port: int) -> str:
    """Another port at the coordinator's address."""
    return f"{coordinator.rpartition(':')[0]}:{port}"


def _other_authority(node: NodeId) -> str:
    return (
        f"it shows a certificate of an authority that node {node} does not know. If the fleet's authority was changed "
        "while this node was away, have it join again: make a token with `muster nodes token create`, start the agent "
        "with it, and what it runs goes on"
    )


def _how_to_join(node: NodeId, kept: Membership | None) -> str:
    remedy = "make a token with `muster nodes token create` and give it with --join-file or MUSTER_JOIN_TOKEN"
    if kept is None:
        return f"node {node} has not joined a fleet: {remedy}"
    said = kept.facts
    if said.node != node:
        return (
            f"this state directory belongs to node {said.node}, not {node}: start with --name {said.node}, or {remedy}"
        )
    return f"the certificate of node {node} ended at {said.not_after:%Y-%m-%d %H:%M} UTC: {remedy}"
