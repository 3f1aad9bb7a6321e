"""What an agent before this one left running as plain processes, also where its records are damaged."""

import logging
from dataclasses import replace
from pathlib import Path

from agent.executions.aside import put_aside
from agent.executions.layout import PROCESS_RECORD, ExecutionDirectory
from agent.runtimes.process.record import ProcessRecord, read_record
from muster.domain.ids import ExecutionId

log = logging.getLogger(__name__)


def runs_all_the_same(directory: ExecutionDirectory, record: ProcessRecord, own_user: int | None) -> bool:
    """Whether anything is to be done about an execution whose record is damaged; the record is kept for people."""
    execution = directory.path.name
    members = replace(record.subtree(execution), user=own_user).members()
    kept = put_aside(directory.path / PROCESS_RECORD, directory.path.parent.parent, execution)
    facts = {"execution": execution, "kept": str(kept), "processes": len(members)}
    log.warning("the record of an execution is damaged; what runs of it is ended", extra=facts)
    return bool(members) or record.code is not None


def recorded(executions: Path) -> list[tuple[ExecutionDirectory, ProcessRecord]]:
    """Directories of executions whose program was started."""
    found = [
        ExecutionDirectory(executions, ExecutionId(path.parent.name))
        for path in sorted(executions.glob(f"*/{PROCESS_RECORD}"))
    ]
    records = ((directory, read_record(directory.path)) for directory in found)
    return [(directory, record) for directory, record in records if record is not None]
