"""Operations on pulls of images: who may have nodes pull one before a job needs it, and which nodes do."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement.capacity import key_of
from coordinator.core.records import Node
from coordinator.core.requests.pools import known_pools, unknown_pool
from coordinator.engine.engine import Engine
from coordinator.service.data.pull_book import RunningPulls
from coordinator.service.operations import Operation, Operations, audit_entry
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller
from coordinator.trust.secrets.secrets import Secrets
from coordinator.views.nodes import unknown_node
from muster.domain.data.kept.pull import ImagePull, NodePull, PullStep, PullView
from muster.domain.errors import ConflictError, UnknownNameError
from muster.domain.fleet.features import PULL_IMAGES
from muster.domain.ids import NodeId
from muster.domain.jobs.job import Role, RuntimeKind

_OLD = "its agent is too old to pull images on an order; upgrade it"
_NO_ENGINE = "it has no container engine that works; `muster nodes` says what it has"


class PullOperations:
    """What callers may do with images that nodes do not have yet."""

    def __init__(
        self, operations: Operations, engine: Engine, running: RunningPulls, secrets: Secrets, audit: AuditLog
    ) -> None:
        self._operations = operations
        self._engine = engine
        self._running = running
        self._secrets = secrets
        self._audit = audit

    async def pull(
        self, caller: Caller, image: str, *, nodes: Sequence[str] = (), pool: str = "", project: str = ""
    ) -> PullView:
        """Have nodes pull an image; how that begins. No node named: all of the pool, or of the fleet.

        The registry is shown the credentials that the project has for it. Raises ConflictError where no node is meant.
        """

        def choose(cluster: Cluster, _: datetime) -> Sequence[NodePull]:
            return [_begun(node) for node in _meant(cluster, nodes, pool)]

        where = " ".join(nodes) or (f"pool {pool}" if pool else "all nodes")
        async with self._operations.begin(caller, "images.pull", f"{image} {where}") as operation:
            chosen = await self._engine.query(choose)
            if not chosen:
                raise ConflictError("no node is meant that has a container engine; `muster nodes` lists them")
            username, password = await self._login(operation, caller.meant_project(project), image)

            def order_for(number: str) -> ImagePull:
                return ImagePull(number=number, image=image, username=username, password=password)

            return self._running.begin(image, chosen, order_for)

    async def pulled(self, caller: Caller, pull: str, revision: int) -> PullView:
        """How far a pull is, once that is other than at a revision, or some seconds have passed."""
        async with self._operations.begin(caller, "images.watch", pull):
            return await self._running.seen(pull, revision)

    async def _login(self, operation: Operation, project: str, image: str) -> tuple[str, str]:
        """Name and password for the registry of an image; empty where the project has none for it."""
        operation.require_in(project)
        found = await self._secrets.delivered(project, Role(image=image))
        if not found:
            return "", ""
        target = f"{project}/{found[0].name}"
        self._audit.note(audit_entry(operation.caller, "secrets.deliver", target, f"ok, given to nodes for {image}"))
        await self._audit.kept()  # nobody is given a value of which no trace is left
        username, password = (_text(found[0].values.get(key, b"")) for key in ("username", "password"))
        return username, password


def _meant(cluster: Cluster, nodes: Sequence[str], pool: str) -> Iterator[Node]:
    """The nodes that are to pull, by name: those that are named, or all of a pool that have an engine."""
    if pool and pool not in known_pools(cluster):
        raise UnknownNameError(unknown_pool(cluster, pool))
    for name in dict.fromkeys(map(NodeId, nodes)):
        if name not in cluster.nodes:
            raise unknown_node(name)
    for name in sorted(map(NodeId, set(nodes)) if nodes else cluster.nodes, key=key_of):
        node = cluster.nodes[name]
        if nodes or (_has_engine(node) and pool in {"", cluster.load.total.of(name).pool}):
            yield node


def _begun(node: Node) -> NodePull:
    """How the pull begins on a node: it waits, or fails at once."""
    if not _has_engine(node):
        return NodePull(node=node.name, step=PullStep.FAILED, why=_NO_ENGINE)
    if PULL_IMAGES not in node.features:
        return NodePull(node=node.name, step=PullStep.FAILED, why=_OLD)
    return NodePull(node=node.name)


def _has_engine(node: Node) -> bool:
    offers = node.inventory.runtimes
    return any(each.kind is RuntimeKind.DOCKER and each.problem is None for each in offers)


def _text(value: bytes) -> str:
    return value.decode(errors="replace").rstrip("\r\n")
