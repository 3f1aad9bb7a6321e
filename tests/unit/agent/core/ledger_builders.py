"""Values that the tests of the agent's core need, with what a test does not care about filled in."""

from datetime import UTC, datetime

from agent.core.actions import Action, NoteDeadlines
from agent.core.events import Armed, Event, PlanReceived, Prepared, Started
from agent.core.step import AgentState, Now, step
from muster.domain.gangs.plan import Assignment, Desired, Goal, Plan
from muster.domain.gangs.roster import MASTER_PORT_NAME, Member, PortLease, Roster
from muster.domain.ids import ExecutionId, JobId, NodeId, execution_id
from muster.domain.jobs.job import Network, Role

JOB = JobId("j")
NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
MASTER = PortLease(name=MASTER_PORT_NAME, host_port=20000, container_port=20000)


def execution(rank: int = 0, attempt: int = 1) -> ExecutionId:
    return execution_id(JOB, attempt, rank)


def assignment(rank: int = 0, *, size: int = 2, attempt: int = 1, **changes: object) -> Assignment:
    fields: dict[str, object] = {
        "execution": execution(rank, attempt),
        "job": JOB,
        "job_name": "train",
        "attempt": attempt,
        "rank": rank,
        "world_size": size,
        "local_rank": 0,
        "local_world_size": 1,
        "node_rank": rank,
        "node_count": size,
        "role": Role(command=("train",), count=size),
        "network": Network.HOST,
    }
    return Assignment(**{**fields, **changes})  # type: ignore[arg-type]  # a builder takes any field


def roster(size: int = 2, attempt: int = 1) -> Roster:
    members = tuple(
        Member(
            rank=rank,
            execution=execution(rank, attempt),
            role="worker",
            node=NodeId(f"node-{rank}"),
            address=f"10.0.0.{rank + 1}",
            checked_in_at=NOW,
            ports=(MASTER,) if rank == 0 else (),
        )
        for rank in range(size)
    )
    return Roster.of(job=JOB, job_name="train", attempt=attempt, network=Network.HOST, members=members)


def desired(goal: Goal, rank: int = 0) -> Desired:
    known = assignment(rank) if goal is Goal.PREPARE else None
    return Desired(execution=execution(rank), goal=goal, assignment=known)


class Agent:
    """Feeds the core of an agent, at one moment, and keeps count of the plans' revisions."""

    def __init__(self) -> None:
        self.state = AgentState(began=0.0)
        self.ledger = self.state.ledger

    def step(self, event: Event, wall: datetime = NOW, boot: float = 0.0) -> list[Action]:
        """What is ordered and told; that deadlines change is none of the ledger's business."""
        actions = step(self.state, event, Now(wall=wall, boot=boot))
        return [action for action in actions if not isinstance(action, NoteDeadlines)]

    def plan(
        self, *lines: Desired, removed: tuple[ExecutionId, ...] = (), rosters: tuple[Roster, ...] = ()
    ) -> list[Action]:
        """A change of the plan before."""
        revision = self.ledger.revision
        plan = Plan(revision=revision + 1, base=revision, desired=lines, removed=removed, rosters=rosters)
        return self.step(PlanReceived(plan=plan))

    def whole_plan(self, *lines: Desired, rosters: tuple[Roster, ...] = ()) -> list[Action]:
        plan = Plan(revision=self.ledger.revision + 1, desired=lines, rosters=rosters)
        return self.step(PlanReceived(plan=plan))


def running() -> Agent:
    """An agent that runs rank 0."""
    agent, me = Agent(), execution()
    agent.plan(desired(Goal.PREPARE))
    agent.step(Prepared(execution=me, address="10.0.0.1", ports=(MASTER,)))
    agent.plan(desired(Goal.ARM), rosters=(roster(),))
    agent.step(Armed(execution=me))
    agent.plan(desired(Goal.RUN))
    agent.step(Started(execution=me))
    return agent
