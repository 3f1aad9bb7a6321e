"""Operations on jobs over an engine without a disk, called without a transport."""

from typing import cast

from coordinator.engine.engine import Engine
from coordinator.service.archive import Archive, StoredPast
from coordinator.service.jobs import PACE, JobOperations
from coordinator.service.submitting import SubmitDesk
from coordinator.service.watching.logs import LogMerge
from coordinator.service.watching.points import PointMerge
from coordinator.store.records.memory import MemoryStore
from coordinator.trust.secrets.secrets import Secrets
from muster.domain.fleet.access import Permissions
from muster.domain.fleet.secret import Secret
from tests.unit.coordinator.service.callers import Trusted


class NoSecrets:
    """Projects without secrets."""

    def of_project(self, project: str) -> dict[str, Secret]:
        del project
        return {}


def job_operations(
    engine: Engine, trusted: Trusted, old: StoredPast | None = None, pace: float = PACE
) -> JobOperations:
    """Jobs without secrets, questions without logs; `old`: where old attempts are, if there are any."""
    archive = Archive(
        logs=cast("LogMerge", None), points=cast("PointMerge", None), past=old or StoredPast(MemoryStore())
    )
    desk = SubmitDesk(lambda _: Permissions(), cast("Secrets", NoSecrets()))
    return JobOperations(trusted.operations, engine, desk, archive, pace)
