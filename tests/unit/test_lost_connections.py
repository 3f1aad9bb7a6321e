"""A connection that is away for longer than was agreed, or for good: what is said then."""

import asyncio
from typing import cast

import grpc
import grpc.aio
import pytest

from muster.carrying.carrier import ChannelCarrier, Stream
from muster.carrying.channel_end import ChannelEnd, ChannelLostError
from muster.client.attachments.finished import error_of_end
from muster.domain.attachments.frame import AttachmentEnded, AttachmentTrouble
from muster.domain.errors import (
    ConflictError,
    MusterError,
    PermissionDeniedError,
    UnavailableError,
)
from tests.unit.leaping_time import run_leaping

MINUTE = 60.0


class RefusedStream:
    """A stream that ends with a status before anything was said."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        self._error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), text)

    async def read(self) -> object:
        raise self._error

    async def write(self, _: object) -> None:
        raise self._error

    def cancel(self) -> bool:
        return False


def lost(code: grpc.StatusCode, text: str) -> tuple[ChannelLostError, float]:
    """What whoever is attached hears where every stream is refused so, and after how many seconds."""

    async def carried() -> tuple[ChannelLostError, float]:
        end = ChannelEnd()
        await ChannelCarrier(end, lambda: cast("Stream", RefusedStream(code, text)), 10 * MINUTE).run()
        with pytest.raises(ChannelLostError) as error:
            await end.receive()
        return error.value, asyncio.get_running_loop().time()

    return run_leaping(carried())


def test_a_connection_is_lost_after_ten_minutes_and_not_before() -> None:
    error, seconds = lost(grpc.StatusCode.UNAVAILABLE, "nobody listens")

    assert str(error) == "the connection was lost for 10 min: nobody listens"
    assert 10 * MINUTE < seconds < 10 * MINUTE + 2 * 2.0
    assert not error.closed


@pytest.mark.parametrize(
    ("code", "closed"), [(grpc.StatusCode.PERMISSION_DENIED, True), (grpc.StatusCode.FAILED_PRECONDITION, False)]
)
def test_what_the_relay_ends_for_good_is_not_tried_again(code: grpc.StatusCode, closed: bool) -> None:
    error, seconds = lost(code, "it is over")

    assert (str(error), error.closed, seconds) == ("it is over", closed, 0.0)


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        (AttachmentTrouble.CLOSED, PermissionDeniedError),
        (AttachmentTrouble.LOST, UnavailableError),
        (AttachmentTrouble.NOT_REACHED, UnavailableError),
        (AttachmentTrouble.TAKEN_OVER, ConflictError),
    ],
)
def test_how_an_attachment_ended_is_an_error_of_its_kind(trouble: AttachmentTrouble, kind: type[MusterError]) -> None:
    error = error_of_end(AttachmentEnded(code=255, trouble=trouble, text="it is over"))

    assert type(error) is kind
    assert str(error) == "it is over"
