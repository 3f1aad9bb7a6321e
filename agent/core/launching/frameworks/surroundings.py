"""What a framework or a dialect brings to an execution beyond what every job gets."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LONGEST_LIST = 64 * 1024
"""Bytes of a variable that names every member; a longer one is left out, as Linux takes no more than 128 KiB."""

OWN_VARIABLES = "MUSTER_OWN_VARIABLES"
"""Names the variables that rank 0 must not hand to the others, which would take themselves for rank 0, with its GPUs.
Intel MPI's mpirun hands over all (MPICH's, too, without `HYDRA_ENV`), and so does srun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Variables and files of one execution."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that count whatever the job says."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables that the image or the job may replace."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Name in the configuration directory → content."""
    programs: Mapping[str, bytes] = field(default_factory=dict)
    """Name of a program that user code finds by PATH → content."""
    wrapper: tuple[str, ...] = ()
    """Words that come before the command of the job."""
    instead: tuple[str, ...] = ()
    """Words that run in place of the command of the job and of any entrypoint."""
    own_variables: str = ""
    """A variable to be set to the names of all that differ between executions; empty: none."""
    masked: tuple[bytes, ...] = field(default=(), repr=False)
    """Values that must not show up in what it prints."""
    host_names: Mapping[str, str] = field(default_factory=dict)
    """Host name → address, beside the names of the roster."""


def if_short(name: str, value: str) -> dict[str, str]:
    """The variable, unless it is so long that it could keep a program from starting."""
    return {name: value} if len(value) <= LONGEST_LIST else {}
