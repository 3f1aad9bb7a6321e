"""The service for jobs on an engine without a disk, called as gRPC calls it."""

from typing import Any, cast

import grpc

from coordinator.engine import Engine
from coordinator.rpc.jobs import JobService
from coordinator.rpc.log_merge import LogMerge
from coordinator.trust.secrets import Secrets
from muster.domain.access import Policy
from muster.domain.secret import Secret


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


def job_service(engine: Engine) -> Any:  # noqa: ANN401 - called without the context that gRPC gives
    """For jobs without secrets and questions without logs."""
    return JobService(engine, lambda _: Policy(), cast("LogMerge", None), cast("Secrets", NoSecrets()))
