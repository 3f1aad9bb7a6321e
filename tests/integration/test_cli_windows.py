"""The commands about windows, against a coordinator that answers from values."""

import json
from datetime import timedelta

import pytest

from muster.domain.fleet.window import DEFAULT_NOTICE
from muster.rpc.v1 import nodes_pb2
from muster.wire.nodes import window_from_wire
from tests.integration.canned_coordinator import Canned, serving
from tests.integration.command_line import Muster


@pytest.mark.parametrize(
    ("said", "meant"),
    [((), DEFAULT_NOTICE), (("--notice", "1h"), timedelta(hours=1)), (("--notice", "none"), timedelta())],
    ids=["nothing", "an hour", "no notice"],
)
def test_a_window_has_the_notice_that_is_said(said: tuple[str, ...], meant: timedelta) -> None:
    canned = Canned()
    with serving(canned) as address:
        done = Muster(canned, address)("windows", "add", "disks", "--node", "a", "--from", "2h", "--to", "8h", *said)

    assert done.stdout == "window disks is set\n", done.output
    [request] = canned.asked_for(nodes_pb2.PutWindowRequest)
    assert window_from_wire(request.window).notice == meant


def test_a_window_is_listed_until_it_is_removed() -> None:
    canned = Canned()
    with serving(canned) as address:
        muster = Muster(canned, address)
        muster("windows", "add", "disks", "--node", "a", "--from", "2h", "--to", "8h")
        listed = json.loads(muster("windows", "-o", "json").stdout)
        removed = muster("windows", "remove", "disks").stdout
        left = muster("windows", "-o", "json").stdout

    assert [window["name"] for window in listed] == ["disks"]
    assert removed == "window disks is removed\n"
    assert json.loads(left) == []
