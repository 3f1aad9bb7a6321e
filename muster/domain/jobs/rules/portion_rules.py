"""What is wrong with the portions of GPUs that executions ask for."""

from collections.abc import Iterator

from muster.domain.fault import Fault
from muster.domain.jobs.job import Resources
from muster.domain.jobs.placing.portion import LEAST_GPU_MEMORY, LEAST_PORTION, PORTION_FORM, WHOLE_GPU
from muster.domain.jobs.rules import job_values as values
from muster.domain.jobs.rules.job_values import Wrong
from muster.domain.jobs.rules.telling import told


def gpu_portion(thousandths: int) -> Wrong | None:
    """Thousandths of a GPU; a thousand of them are a whole one."""
    if thousandths > WHOLE_GPU:
        return Wrong(f"must be {PORTION_FORM}; `gpus` says how many GPUs", f"gpus: {max(1, thousandths // WHOLE_GPU)}")
    return None if thousandths >= LEAST_PORTION else Wrong(f"must be {PORTION_FORM}")


def gpu_memory(size: int) -> Wrong | None:
    """Bytes of memory of a GPU."""
    return values.memory(size, LEAST_GPU_MEMORY)


def portion_faults(resources: Resources) -> Iterator[Fault]:
    """Everything that is wrong with portions, by paths below the role."""
    said = {
        "mig": resources.mig is not None,
        "gpu_portion": resources.gpu_portion is not None,
        "gpu_memory": resources.gpu_memory is not None,
    }
    names = [name for name, is_said in said.items() if is_said]
    if names in ([], ["mig"]):
        return
    if len(names) > 1:
        message = f"cannot be together with {names[0]}: GPUs are given by one of mig, gpu_portion and gpu_memory"
        yield Fault(path=("resources", names[1]), message=message)
    if not resources.gpus:
        message = "is of how many GPUs it gets a part, so it must be at least 1"
        yield Fault(path=("resources", "gpus"), message=message)
    if resources.gpu_portion is not None:
        yield from told(("resources", "gpu_portion"), gpu_portion(resources.gpu_portion))
    if resources.gpu_memory is not None:
        yield from told(("resources", "gpu_memory"), gpu_memory(resources.gpu_memory))
