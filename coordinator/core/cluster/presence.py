"""What the coordinator believes of each node right now; nothing of it is stored."""

from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime

from muster.domain.fleet.node import NodeState
from muster.domain.gangs.fence import LEASE
from muster.domain.ids import ExecutionId, NodeId


class Presence:
    """What is believed of one node: its stream, its lease, its plans, and what it runs although nobody wants it."""

    __slots__ = (
        "_applied",
        "_changed",
        "_dismissed",
        "_in_contact_since",
        "_last_seen_at",
        "_lost",
        "_opened",
        "_revision",
        "_seen",
        "_session",
        "_unwanted",
    )

    def __init__(self, since: datetime, changed: Callable[[], None]) -> None:
        """`changed` is called whenever something else than before can be placed on the node."""
        self._changed = changed
        self._last_seen_at = since
        self._seen = False
        self._session: int | None = None
        self._opened = 0
        self._in_contact_since: datetime | None = None
        self._lost = False
        self._revision = 0
        self._applied = 0
        """The newest revision when the last heartbeat came: by the next one the node must have applied it."""
        self._dismissed: dict[ExecutionId, None] = {}
        self._unwanted: set[ExecutionId] = set()

    # reading

    @property
    def last_seen_at(self) -> datetime:
        """When the node was heard last; after a start of the coordinator the time of the start."""
        return self._last_seen_at

    @property
    def seen(self) -> bool:
        """Whether the node has spoken since the coordinator started."""
        return self._seen

    @property
    def session(self) -> int | None:
        """The open stream; None: there is none."""
        return self._session

    @property
    def in_contact_since(self) -> datetime | None:
        """Since when the node was silent for no lease; None: never since the coordinator started."""
        return self._in_contact_since

    @property
    def state(self) -> NodeState:
        """READY only while the stream is open."""
        if self._lost:
            return NodeState.LOST
        return NodeState.READY if self._session is not None else NodeState.UNREACHABLE

    @property
    def plan_revision(self) -> int:
        """The revision of the newest plan that was made for the node."""
        return self._revision

    @property
    def dismissed(self) -> AbstractSet[ExecutionId]:
        """Executions that the node may clear away, and was not told so yet."""
        return self._dismissed.keys()

    @property
    def unwanted(self) -> AbstractSet[ExecutionId]:
        """Executions that run there although nobody wants them; nothing is placed there until they are gone."""
        return self._unwanted

    def counts(self, session: int | None) -> bool:
        """Whether a message counts: what comes on a closed stream is told again by the next Hello, and newer."""
        return self._session is not None and session in {None, self._session}

    def has_overtaken(self, opened: int, now: datetime) -> bool:
        """Whether a Hello is older than one that was taken, though it comes later: it would deny what runs by now.

        Only for a lease, so that an agent whose clock was put back is not shut out.
        """
        return opened < self._opened and now < self._last_seen_at + LEASE

    # changing

    def heard(self, now: datetime) -> None:
        """Begin the lease anew: the node has spoken."""
        self._last_seen_at = now

    def opened(self, session: int, opened: int, unwanted: set[ExecutionId], now: datetime) -> None:
        """Believe in a node whose agent has opened a stream; `opened` counts its streams, by its own count."""
        if not self._seen or now >= self._last_seen_at + LEASE:
            self._in_contact_since = now
        self._session, self._opened, self._unwanted = session, opened, unwanted
        self._seen, self._lost, self._applied = True, False, 0
        self._last_seen_at = now
        self._changed()

    def closed(self) -> None:
        """Do without a stream until there is a new one."""
        self._session = None
        self._changed()

    def lost(self) -> None:
        """Give the node up: it was silent for too long."""
        self._lost = True
        self._changed()

    def gone(self, execution: ExecutionId) -> bool:
        """Note that an execution runs there no longer; whether nobody wanted it."""
        if execution not in self._unwanted:
            return False
        self._unwanted.discard(execution)
        self._changed()
        return True

    def applied(self, revision: int) -> bool:
        """Note the revision that a heartbeat tells; False: the node has missed a plan."""
        up_to_date = self._applied <= revision <= self._revision
        self._applied = self._revision
        return up_to_date

    def next_revision(self) -> int:
        """The revision of a plan that is being made; the building of plans alone asks for it."""
        self._revision += 1
        return self._revision

    def dismiss(self, execution: ExecutionId) -> bool:
        """Note that the node may clear an execution away; whether it is the first that it was not told of."""
        first = not self._dismissed
        self._dismissed[execution] = None
        return first

    def take_dismissed(self) -> dict[ExecutionId, None]:
        """What the node may clear away; it is told now."""
        dismissed, self._dismissed = self._dismissed, {}
        return dismissed


class Presences:
    """The presence of every node."""

    def __init__(self, *changed: Callable[[NodeId], None]) -> None:
        """Each of `changed` is called with a node on which something else than before can be placed."""
        self._changed = changed
        self._nodes: dict[NodeId, Presence] = {}
        self._silent: dict[NodeId, None] = {}
        self._awake_since = datetime.min.replace(tzinfo=UTC)
        """Since when the coordinator looks at leases without a gap; before that nobody was silent."""

    def __getitem__(self, node: NodeId) -> Presence:
        return self._nodes[node]

    def __contains__(self, node: object) -> bool:
        return node in self._nodes

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._nodes)

    def get(self, node: NodeId) -> Presence | None:
        """The presence of a node; None: nobody knows it."""
        return self._nodes.get(node)

    @property
    def silent(self) -> Collection[NodeId]:
        """The nodes that have no stream now, and are not lost."""
        return self._silent.keys()

    def believes_in(self, node: NodeId) -> bool:
        """Whether a node is known, and has not been given up."""
        presence = self._nodes.get(node)
        return presence is not None and presence.state is not NodeState.LOST

    def heard_at(self, node: NodeId) -> datetime:
        """Until when a node was not silent, as far as the coordinator could hear."""
        return max(self._nodes[node].last_seen_at, self._awake_since)

    def appear(self, node: NodeId, now: datetime) -> Presence:
        """Begin to believe in a node; the presence that it has already stays."""
        presence = self._nodes.get(node)
        if presence is None:
            presence = self._nodes[node] = Presence(now, lambda: self._tell(node))
            self._silent[node] = None
        return presence

    def forget(self, node: NodeId) -> None:
        """Believe nothing of a node any more."""
        self._nodes.pop(node, None)
        self._silent.pop(node, None)

    def woke_up(self, now: datetime) -> None:
        """Call no node silent for a time in which the coordinator itself could not hear."""
        self._awake_since = now

    def _tell(self, node: NodeId) -> None:
        if self._nodes[node].state is NodeState.UNREACHABLE:
            self._silent[node] = None
        else:
            self._silent.pop(node, None)
        for changed in self._changed:
            changed(node)
