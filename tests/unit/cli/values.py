"""Jobs and nodes as the command line sees them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from io import StringIO

from rich.console import Console, RenderableType

from muster.domain.fleet.node import Gpu, Inventory, NodeState, NodeView
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import GpuUuid, JobId, NodeId, execution_id
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.job import JobSpec, Resources, Role
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import AttemptView, ExecutionView, JobView, LogLine, Transition

START = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
JOB = JobId("j7k2")
SPEC = JobSpec(
    project="default",
    name="ring",
    roles=(Role(count=2, command=("python", "ring.py"), resources=Resources(gpus=1, memory=2**34)),),
)
EXIT_3 = Failure(
    kind=FailureKind.EXIT_CODE,
    message="ended with exit code 3",
    rank=1,
    node=NodeId("b"),
    exit=Exit(code=3),
    log_tail=("Traceback", "ValueError: [red]no[/red]"),
)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def execution(
    rank: int,
    state: State,
    *,
    detail: str = "",
    entered: Mapping[State, float] | None = None,
    ended: Exit | None = None,
    failure: Failure | None = None,
) -> ExecutionView:
    here = state in {State.CHECKED_IN, State.ARMED, State.RUNNING, State.SUCCEEDED}
    return ExecutionView(
        id=execution_id(JOB, 1, rank),
        rank=rank,
        role="worker",
        state=state,
        node=None if state is State.QUEUED else NodeId("ab"[rank % 2]),
        gpus=(GpuUuid(f"GPU-{rank}"),),
        detail=detail,
        address=f"10.0.0.{rank + 1}" if here else None,
        ports=(PortLease(name="master", host_port=20001, container_port=20001),) if here else (),
        exit=ended,
        failure=failure,
        transitions=tuple(Transition(state=each, at=at(when)) for each, when in (entered or {}).items()),
    )


def attempt(*executions: ExecutionView, number: int = 1, **times: float) -> AttemptView:
    return AttemptView(
        number=number,
        executions=executions,
        **{f"{name}_at": at(when) for name, when in times.items()},  # type: ignore[arg-type]  # all fields with such names are times
    )


def job(
    phase: JobPhase,
    *attempts: AttemptView,
    summary: str = "",
    failure: Failure | None = None,
    started: float | None = None,
    ended: float | None = None,
) -> JobView:
    return JobView(
        id=JOB,
        spec=SPEC,
        phase=phase,
        summary=summary,
        submitted_at=START,
        owner="ada",
        sequence=7,
        started_at=None if started is None else at(started),
        ended_at=None if ended is None else at(ended),
        attempts=attempts,
        failure=failure,
    )


def gpu(index: int, *problems: str) -> Gpu:
    return Gpu(uuid=GpuUuid(f"GPU-{index}"), index=index, model="NVIDIA H100", memory=80 * 2**30, problems=problems)


def node(name: str = "a", *gpus: Gpu, taken: tuple[str, ...] = ()) -> NodeView:
    return NodeView(
        name=NodeId(name),
        state=NodeState.READY,
        address="10.0.0.1",
        inventory=Inventory(cpus=8, memory=32 * 2**30, gpus=gpus),
        gpus_taken=tuple(map(GpuUuid, taken)),
        cpu_millis_taken=1500,
        memory_taken=2**33,
    )


def line(text: bytes, *, rank: int = 0, stream: str = "stdout", partial: bool = False, seconds: float = 0.0) -> LogLine:
    return LogLine(rank=rank, stream=stream, time=at(seconds), text=text, partial=partial)


def shown(*parts: RenderableType, width: int = 200) -> str:
    """What somebody reads in a terminal without colours."""
    out = StringIO()
    console = Console(file=out, width=width, highlight=False)
    for part in parts:
        console.print(part)
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines())
