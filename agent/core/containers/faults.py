"""What Docker's complaints mean for the user: kind and sentence."""

import re

from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.image import registry_of

_BAD_REQUEST = 400

_MEANINGS = (
    (r"no space left on device", FailureKind.DISK_FULL, "the node's disk is full"),
    (r"port is already allocated|address already in use", FailureKind.PORT_TAKEN, "a port is taken on the node"),
    (
        r"could not select device driver",
        FailureKind.GPU,
        "Docker on this node cannot hand out GPUs; install the NVIDIA Container Toolkit there",
    ),
    (r"nvidia|nvml|cdi device", FailureKind.GPU, "the GPUs could not be handed to the container"),
    (r"unable to find (user|group)|no matching entries in", FailureKind.INVALID_OPTION, "user: not known in the image"),
    (r"rlimit|ulimit", FailureKind.INVALID_OPTION, "ulimits: not possible on this node"),
    (r"exec format error", FailureKind.IMAGE, "the image is not for this node's processor"),
    (
        r'exec: "[^"]*": .*(not found|no such file|permission denied|is a directory)|exec .* failed: No such file',
        FailureKind.COMMAND_NOT_FOUND,
        "the program cannot be run",
    ),
    (
        r"cannot join network of",
        FailureKind.RUNTIME,
        "the container that held the execution's network has ended",
    ),
    (r"no such container", FailureKind.RUNTIME, "its container was removed by somebody else"),
    (r"no such image", FailureKind.IMAGE, "the image is not on the node"),
)


def fault(status: int, message: str) -> ExecutionError:
    """The error for what Docker refused while it made or started a container."""
    text = " ".join(message.split())
    for pattern, kind, sentence in _MEANINGS:
        if re.search(pattern, text, re.IGNORECASE):
            return ExecutionError(kind, f"{sentence} (Docker: {text})")
    if status == _BAD_REQUEST:
        return ExecutionError(FailureKind.INVALID_OPTION, f"Docker does not take an option of the job: {text}")
    return ExecutionError(FailureKind.RUNTIME, f"Docker cannot do it: {text}")


def pull_fault(image: str, message: str, *, known: bool = False) -> ExecutionError:
    """The error for an image that could not be fetched; `known`: with credentials of the project."""
    text = " ".join(message.split())
    if "no space left on device" in text.lower():
        return ExecutionError(FailureKind.DISK_FULL, f"the node's disk is full: image {image} does not fit on it")
    hint = ""
    if re.search(r"unauthorized|authentication required|no basic auth|access denied|denied:", text, re.IGNORECASE):
        server = registry_of(image)
        hint = f"; the project's credentials for {server} do not let it" if known else _NO_LOGIN.format(server=server)
    return ExecutionError(FailureKind.IMAGE, f"image {image} cannot be pulled: {text}{hint}")


_NO_LOGIN = "; the project has no credentials for {server} (`muster secrets set NAME --kind registry`)"
