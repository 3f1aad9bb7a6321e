"""The notice that user code finds beside the roster once it is being stopped, and that the next agent goes by."""

from agent.executions.files import READABLE
from agent.executions.layout import ExecutionDirectory
from agent.executions.whole_file import write_whole
from muster.domain.jobs.stopping.notice import NOTICE, StopNotice, read_notice


def give_notice(directory: ExecutionDirectory, notice: StopNotice) -> None:
    """Write the notice, whole or not at all, in place of one that is there. Raises OSError."""
    write_whole(directory.config / NOTICE, notice.written(), READABLE)


def given_notice(directory: ExecutionDirectory) -> StopNotice | None:
    """The notice that was written; None where there is none that can be read."""
    try:
        return read_notice((directory.config / NOTICE).read_bytes())
    except (OSError, ValueError):
        return None
