"""The dialects of a job: other systems whose variables and files its code looks for."""

from enum import StrEnum

VALOHAI_DIRECTORY = "/valohai"
"""Where containers find the directories that Valohai has for executions."""
VALOHAI_REPOSITORY = f"{VALOHAI_DIRECTORY}/repository"
"""The working directory of Valohai's containers."""


class Dialect(StrEnum):
    """A system whose words user code understands."""

    SLURM = "slurm"  #: `SLURM_PROCID`, `SLURM_JOB_NODELIST` and the others of a batch job
    VALOHAI = "valohai"  #: `/valohai/config/distributed.json` and `VH_…`, as valohai-utils reads them
    RUNAI = "runai"  #: `RUNAI_JOB_NAME`, `POD_NAME` and torchrun's options
    SKYPILOT = "skypilot"  #: `SKYPILOT_NODE_RANK`, `SKYPILOT_NODE_IPS`
