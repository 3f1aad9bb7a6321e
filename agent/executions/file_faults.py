"""What the node's file system refuses, in words for users."""

import errno

from muster.domain.jobs.failure import FailureKind


def file_fault(error: OSError) -> tuple[FailureKind, str]:
    """Why an execution fails with it."""
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    what = "the node's disk is full" if full else "the node's file system refused"
    message = f"{what}: {error.strerror or error} ({error.filename})"
    return FailureKind.DISK_FULL if full else FailureKind.RUNTIME, message
