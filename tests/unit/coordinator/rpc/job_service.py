"""The service for jobs on an engine without a disk, called as gRPC calls it."""

from typing import Any, cast

import grpc

from coordinator.engine import Engine
from coordinator.rpc.clients.archive import Archive, OldAttempts
from coordinator.rpc.clients.jobs import JobService
from coordinator.rpc.clients.log_merge import LogMerge
from coordinator.store.records.memory import MemoryStore
from coordinator.trust.secrets.secrets import Secrets
from muster.domain.fleet.access import Policy
from muster.domain.fleet.secret import Secret


class RefusedCallError(Exception):
    """The call ended with a status."""


class Call:
    """A call that may be aborted."""

    async def abort(self, status: grpc.StatusCode, text: str, *_: object) -> None:
        raise RefusedCallError(status, text)


class NoSecrets:
    """Projects without secrets."""

    def of_project(self, project: str) -> dict[str, Secret]:
        del project
        return {}


def job_service(engine: Engine, old: OldAttempts | None = None) -> Any:  # noqa: ANN401 - called without gRPC's context
    """For jobs without secrets and questions without logs; `old`: where old attempts are, if there are any."""
    archive = Archive(logs=cast("LogMerge", None), attempts=old or OldAttempts(MemoryStore()))
    return JobService(engine, lambda _: Policy(), archive, cast("Secrets", NoSecrets()))
