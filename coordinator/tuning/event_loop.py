"""The event loop of a coordinator: what wakes it up for gRPC is taken together.

For each event a thread of gRPC writes a byte, and its handler takes all events that there are, but reads one byte: the
loop would go round once for every event, and in most rounds find nothing to do.
"release barrier, 5,000 agents, mTLS" of `make bench ONLY=scale` pays for this.
"""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVarTuple

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

Given = TypeVarTuple("Given")

_MOST = 64 * 1024
"""Bytes that are looked for at once; more wait for the next round."""


class CoordinatorLoop(asyncio.SelectorEventLoop):
    """An event loop like asyncio's own; gRPC's handler is called once for all that waits for it."""

    def add_reader(self, fd: "FileDescriptorLike", callback: Callable[[*Given], object], *args: *Given) -> None:
        """Have a callback called when there is something to be read."""
        if isinstance(fd, socket.socket) and _is_of_grpc(callback):
            super().add_reader(fd, together(fd, partial(callback, *args)))
        else:
            super().add_reader(fd, callback, *args)


def together(waking: socket.socket, take: Callable[[], object]) -> Callable[[], None]:
    """`take`, which reads one byte and takes all that there is, as a callback that leaves it no byte but that one.

    Nothing is missed: a byte is written after what it stands for is there to be taken.
    """

    def take_all() -> None:
        spare = len(waking.recv(_MOST, socket.MSG_PEEK)) - 1
        if spare > 0:
            waking.recv(spare)
        take()

    return take_all


def _is_of_grpc(callback: object) -> bool:
    owner = getattr(getattr(callback, "func", callback), "__self__", None)
    return type(owner).__module__.startswith("grpc.")
