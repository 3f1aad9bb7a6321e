"""What the node's file system refuses, in words for users."""

import errno

from muster.domain.jobs.failure import ExecutionError, FailureKind


def file_fault(error: OSError) -> tuple[FailureKind, str]:
    """Why an execution fails with it."""
    kind = _kind_of(error)
    what = "the node's disk is full" if kind is FailureKind.DISK_FULL else "the node's file system refused"
    return kind, f"{what}: {error.strerror or error} ({error.filename})"


def data_fault(what: str, error: OSError) -> ExecutionError:
    """The failure of an execution whose code or input, as the job file names it, the node's disk does not take."""
    place = error.filename or "the disk of this node"
    return ExecutionError(_kind_of(error), f"{what}: {place}: {error.strerror or error}")


def _kind_of(error: OSError) -> FailureKind:
    return FailureKind.DISK_FULL if error.errno in {errno.ENOSPC, errno.EDQUOT} else FailureKind.RUNTIME
