"""The caller of the gRPC call that is being answered: set at admission, handed on by each service as an argument."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, TypeAlias

import grpc.aio

from coordinator.trust.caller import STRANGER, Caller

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]

Who: TypeAlias = Callable[[Mapping[str, str], Context, datetime], Caller]
"""How a door knows who comes in, by metadata and certificate; raises RefusedError for what does not count."""

CALLER: ContextVar[Caller] = ContextVar("caller", default=STRANGER)


def caller() -> Caller:
    """The caller; a stranger where nobody was let in."""
    return CALLER.get()
