"""How many bytes of logs are kept, by project and in all, and what they may be at most."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from muster.domain.ids import JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """Most bytes of logs; 0: as many as the disk has room for."""

    project: int = 0
    """Bytes of one project."""
    total: int = 0
    """Bytes of all projects together."""


class LogQuota:
    """Counts what is kept; may be used from any thread."""

    def __init__(self, limits: LogLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._of_job: Counter[JobId] = Counter()
        self._project_of: dict[JobId, str] = {}
        self._of_project: Counter[str] = Counter()

    @property
    def limited(self) -> bool:
        """Whether there is anything to count for."""
        return bool(self._limits.project or self._limits.total)

    def count(self, logs: Path, projects: Mapping[JobId, str]) -> None:
        """Add what lies on the disk of these jobs; blocks for as long as it takes to look at every log."""
        for job, project in projects.items():
            directory = logs / job
            if directory.is_dir():
                self.add(job, project, sum(path.stat().st_size for path in directory.glob("*.cri")))

    def add(self, job: JobId, project: str, size: int) -> None:
        """So many bytes more are kept."""
        with self._lock:
            self._of_job[job] += size
            self._project_of[job] = project
            self._of_project[project] += size

    def drop(self, job: JobId) -> None:
        """The logs of a job are gone."""
        with self._lock:
            project = self._project_of.pop(job, None)
            size = self._of_job.pop(job, 0)
            if project is not None:
                self._of_project[project] -= size

    def refusal(self, project: str) -> str | None:
        """Why nothing more of a project is taken, as its logs say; None: there is room."""
        most, kept = self._limits.project, self._of_project[project]
        if most and kept >= most:
            return (
                f"[muster] the quota of {most >> 20} MiB for all logs of project {project} is reached; the rest of "
                "this log is not kept; delete jobs to make room"
            )
        most = self._limits.total
        if most and self._of_project.total() >= most:
            return (
                f"[muster] the coordinator's quota of {most >> 20} MiB for all logs is reached; the rest of this log "
                "is not kept; delete jobs to make room"
            )
        return None
