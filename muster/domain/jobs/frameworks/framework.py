"""The framework that a job's code is written for, as the job names it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

PER_GPU = "gpu"
"""The word for as many processes as an execution has GPUs."""
MOST_PROCESSES = 64
"""Processes of one execution that a job can ask for by number."""
MOST_RESTARTS_IN_PLACE = 100


class FrameworkName(StrEnum):
    """The frameworks that find their peers without a word from the user."""

    PYTORCH = "pytorch"  #: torchrun, accelerate and `env://`
    TENSORFLOW = "tensorflow"  #: `TF_CONFIG`, by roles
    JAX = "jax"  #: `jax.distributed.initialize()`
    XGBOOST = "xgboost"  #: rabit's tracker on rank 0
    LIGHTGBM = "lightgbm"  #: a list of machines
    DEEPSPEED = "deepspeed"  #: its launcher on rank 0, which starts the processes of all executions
    MPI = "mpi"  #: mpirun on rank 0, which starts the processes of all executions
    HOROVOD = "horovod"  #: horovodrun, or mpirun, on rank 0
    RAY = "ray"  #: a cluster whose head is rank 0, where the command runs


class Rendezvous(StrEnum):
    """How the launchers of PyTorch find each other."""

    STATIC = "static"  #: rank 0 listens at the master port, and all are there from the start
    C10D = "c10d"  #: torchrun agrees on the members itself, which restarts in place need


class LaunchPlace(StrEnum):
    """Where the command of a job runs."""

    RANK0 = "rank0"  #: on rank 0 alone, which starts processes in the other executions, or gives them work
    ALL = "all"  #: in every execution


LAUNCH_PLACES: Mapping[FrameworkName, tuple[LaunchPlace, ...]] = {
    **dict.fromkeys(FrameworkName, (LaunchPlace.ALL,)),
    FrameworkName.DEEPSPEED: (LaunchPlace.RANK0, LaunchPlace.ALL),
    FrameworkName.MPI: (LaunchPlace.RANK0,),
    FrameworkName.HOROVOD: (LaunchPlace.RANK0,),
    FrameworkName.RAY: (LaunchPlace.RANK0,),
}
"""Where the command can run with each framework; the first place is the default."""

_WITH_PROCESSES = frozenset({FrameworkName.PYTORCH, FrameworkName.DEEPSPEED, FrameworkName.MPI, FrameworkName.HOROVOD})
_STARTING_ELSEWHERE = frozenset({FrameworkName.DEEPSPEED, FrameworkName.MPI, FrameworkName.HOROVOD})


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """A framework, and what of it the job decides."""

    name: FrameworkName
    processes: int | None = None
    """Processes that user code has in one execution; None: one for each of its GPUs, and one without any.

    Settled at the submit for frameworks that have one process in an execution.
    """
    rendezvous: Rendezvous = Rendezvous.STATIC
    restarts_in_place: int = 0
    """How often torchrun starts its processes again before the execution fails."""
    launch: LaunchPlace | None = None
    """Where the command runs; None: where it does by default with this framework. Settled at the submit."""

    @property
    def is_launched(self) -> bool:
        """Whether a launcher starts the processes of an execution, so that there can be several."""
        return self.name in _WITH_PROCESSES

    @property
    def place(self) -> LaunchPlace:
        """Where the command runs."""
        return self.launch or LAUNCH_PLACES[self.name][0]

    @property
    def starts_elsewhere(self) -> bool:
        """Whether rank 0 starts the processes of all executions, and the others wait for them."""
        return self.place is LaunchPlace.RANK0 and self.name in _STARTING_ELSEWHERE


def processes_of(framework: Framework | None, gpus: int) -> int:
    """The number of processes that user code has in an execution with so many GPUs."""
    if framework is not None and framework.processes is not None:
        return framework.processes
    if framework is not None and not framework.is_launched:
        return 1
    return max(1, gpus)
