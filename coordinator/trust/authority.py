"""The fleet's authority as the coordinator holds it: its files, and the certificate with which it serves."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path

from coordinator.completion import completed
from coordinator.trust.rotation import Rotation, RotationFile, RotationStage
from muster.domain.errors import ConflictError, MusterError
from muster.domain.ids import NodeId
from muster.rpc.notices import digest_of
from muster.trust.certificates import (
    NODE_LIFE,
    PEER_LIFE,
    facts,
    fingerprint,
    issue_node,
    issue_peer,
    issue_server,
    make_authority,
    matches_key,
)
from muster.trust.files import write_private
from muster.trust.identity import CertificateFacts, Identity


class FleetAuthority:
    """Signs the certificates of this fleet."""

    def __init__(
        self, identity: Identity, names: Iterable[str], now: datetime, rotations: RotationFile | None = None
    ) -> None:
        """`rotations` keeps how far a change of the authority is; None: it is never changed."""
        self._identity = identity
        self._names = tuple(names)
        self._rotations = rotations
        self.rotation = Rotation() if rotations is None else rotations.load()
        self.on_change: list[Callable[[], None]] = []
        """Called when nodes are to renew their certificates, because other authorities count than before."""
        self.node_life = NODE_LIFE
        """How long the certificates of nodes last."""
        self._changing = asyncio.Lock()
        self.server: Identity
        """The identity with which the coordinator serves; made anew at every start."""
        self.renew_server(now)

    @property
    def certificate(self) -> bytes:
        """The certificate of the authority that signs the coordinator's own."""
        return self._identity.certificate

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its key."""
        return fingerprint(self._identity.certificate)

    @property
    def trusted(self) -> bytes:
        """Certificates of all authorities that count: what agents and clients trust."""
        following = self.rotation.next
        return self.certificate if following is None else self.certificate + following.certificate

    @property
    def told(self) -> str:
        """What clients compare with what they trust; empty as long as there never was another authority."""
        return digest_of(self.trusted) if self.rotation.epoch else ""

    async def rotate(self, now: datetime) -> None:
        """Begin to change the authority; raises ConflictError while that is going on."""
        await self._step(lambda: self.rotation.begun(self._identity, make_authority(now), now))

    async def issue(self) -> None:
        """Have the next authority sign the certificates of nodes from now on."""
        await self._step(self._issuing)

    def _issuing(self) -> Rotation:
        return self.rotation.issuing()

    async def finish(self, now: datetime) -> None:
        """Have the next authority take the place of the present one, which counts no more; raises ConflictError."""
        async with self._changing:
            finishing = self.rotation.finishing()
            assert finishing.next is not None
            await completed(asyncio.to_thread(self._file.write, finishing))
            over = await completed(asyncio.to_thread(self._file.place, finishing))
            self._identity, self.rotation = finishing.next, over
            self.renew_server(now)
        self._tell()

    async def _step(self, decide: Callable[[], Rotation]) -> None:
        async with self._changing:
            rotation = decide()
            await completed(asyncio.to_thread(self._file.write, rotation))
            self.rotation = rotation
        self._tell()

    def _tell(self) -> None:
        for tell in self.on_change:
            tell()

    @property
    def _file(self) -> RotationFile:
        if self._rotations is None:
            raise ConflictError("this authority is not kept on disk, so it cannot be changed")
        return self._rotations

    def renew_server(self, now: datetime) -> CertificateFacts:
        """Serve with a new key and certificate from now on."""
        self.server = issue_server(self._identity, self._names, now)
        return facts(self.server.certificate)

    def certify(self, request: bytes, node: NodeId, now: datetime, life: timedelta | None = None) -> bytes:
        """A certificate for a node that the registry knows; raises CertificateError for a bad request."""
        return issue_node(self._for_nodes, request, node, now, life or self.node_life)

    def certify_peer(self, request: bytes, node: NodeId, now: datetime, life: timedelta = PEER_LIFE) -> bytes:
        """The certificate with which such a node asks others and answers them; raises CertificateError."""
        return issue_peer(self._for_nodes, request, node, now, life)

    @property
    def _for_nodes(self) -> Identity:
        """The authority that signs for nodes: the next one as soon as all nodes know it."""
        following = self.rotation.next
        return following if following is not None and self.rotation.stage is RotationStage.ISSUING else self._identity


def load_or_make(directory: Path, now: datetime) -> Identity:
    """The authority in a directory, made on the first start; raises MusterError where its key is lost or another's."""
    RotationFile(directory).load()  # which ends what was interrupted
    certificate, key = directory / "authority.pem", directory / "authority.key"
    if not certificate.exists():
        if key.exists():
            raise MusterError(
                f"{certificate} is gone, and {key} is there. Put a backup of {directory} in its place; without it all "
                "nodes must join anew"
            )
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = make_authority(now)
        write_private(key, fresh.key)
        write_private(certificate, fresh.certificate)
        return fresh
    try:
        identity = Identity(certificate=certificate.read_bytes(), key=key.read_bytes())
    except OSError as error:
        raise MusterError(
            f"cannot read {error.filename}: {error.strerror}. Put a backup of {directory} in its place; without it all "
            "nodes must join anew",
        ) from error
    if not matches_key(identity.certificate, identity.key):
        raise MusterError(f"{key} is not the key of {certificate}; put a backup of {directory} in its place")
    return identity
