"""The framework that a job's code is written for, as the job names it."""

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
    RAY = "ray"  #: a cluster whose head is rank 0, where the command runs


class Rendezvous(StrEnum):
    """How the launchers of PyTorch find each other."""

    STATIC = "static"  #: rank 0 listens at the master port, and all are there from the start
    C10D = "c10d"  #: torchrun agrees on the members itself, which restarts in place need


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

    @property
    def is_launched(self) -> bool:
        """Whether a launcher in the execution starts the processes, so that there can be several."""
        return self.name is FrameworkName.PYTORCH


def processes_of(framework: Framework | None, gpus: int) -> int:
    """The number of processes that user code has in an execution with so many GPUs."""
    if framework is not None and framework.processes is not None:
        return framework.processes
    if framework is not None and not framework.is_launched:
        return 1
    return max(1, gpus)
