"""Every value comes back from the wire as it was, and no message from a peer does worse than WireError."""

import inspect
import re
import zlib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from muster import wire
from muster.domain.gangs.plan import Plan
from muster.domain.gangs.roster import Member, Roster
from muster.domain.ids import JobId, NodeId, execution_id
from muster.domain.jobs.job import JobSpec, Network, PortRequest, Role
from muster.domain.jobs.view import Transition
from muster.rpc.v1 import (
    agents_pb2,
    attachments_pb2,
    data_pb2,
    fleet_pb2,
    jobs_pb2,
    model_pb2,
    nodes_pb2,
    projects_pb2,
    trust_pb2,
)
from muster.wire import WireError
from tests.unit.wire_pairs import PAIRS, Pair

NOW = datetime(2026, 11, 21, tzinfo=UTC)


every_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
quick = settings(max_examples=15)


def test_every_function_of_the_wire_is_tested_here() -> None:
    names = {name for name in wire.__all__ if inspect.isfunction(getattr(wire, name))}
    public = [pair.name for pair in PAIRS if pair.place is wire]
    assert names == {f"{name}_{way}_wire" for name in public for way in ("to", "from")}


@every_pair
@quick
@given(data=st.data())
def test_a_value_comes_back_as_it_was(pair: Pair, data: st.DataObject) -> None:
    value = data.draw(pair.strategy)
    sent = pair.to_wire(value).SerializeToString()
    assert pair.from_wire(pair.message.FromString(sent)) == value


@every_pair
@quick
@given(noise=st.binary(max_size=60))
def test_noise_is_a_value_or_a_wire_error(pair: Pair, noise: bytes) -> None:
    _receive(pair, noise)


@every_pair
@quick
@given(data=st.data())
def test_a_damaged_message_is_a_value_or_a_wire_error(pair: Pair, data: st.DataObject) -> None:
    sent = bytearray(pair.to_wire(data.draw(pair.strategy)).SerializeToString())
    for _ in range(min(len(sent), 3)):
        sent[data.draw(st.integers(0, len(sent) - 1))] = data.draw(st.integers(0, 255))
    _receive(pair, bytes(sent))


@every_pair
@quick
@given(data=st.data())
def test_a_well_formed_message_with_any_content_is_a_value_or_a_wire_error(pair: Pair, data: st.DataObject) -> None:
    descriptor = pair.message.DESCRIPTOR
    assert isinstance(descriptor, Descriptor)
    _receive(pair, data.draw(_messages(descriptor)))


def _receive(pair: Pair, sent: bytes) -> None:
    """A value must survive the way back as well; anything but WireError fails the test."""
    try:
        value = pair.from_wire(pair.message.FromString(sent))
    except (DecodeError, WireError):
        return
    assert pair.from_wire(pair.to_wire(value)) == value


def _named(message: str) -> Descriptor:
    files = (agents_pb2, attachments_pb2, data_pb2, fleet_pb2, jobs_pb2, model_pb2, nodes_pb2, projects_pb2, trust_pb2)
    named: Descriptor = next(found for file in files if (found := file.DESCRIPTOR.message_types_by_name.get(message)))
    return named


@st.composite
def _messages(draw: st.DrawFn, descriptor: Descriptor) -> bytes:
    """Bytes in which the fields have their right wire types and arbitrary content."""
    sent = b""
    for field in descriptor.fields:
        for _ in range(draw(st.integers(0, 2 if field.is_repeated else 1))):
            if field.message_type is not None:
                sent += _length_delimited(field.number, draw(_messages(field.message_type)))
            elif field.cpp_type == field.CPPTYPE_STRING:
                text = draw(st.sampled_from(["", "a", "host", "docker", "/x", "running", "stdout", "=", "\0", "a b"]))
                sent += _length_delimited(field.number, text.encode())
            else:
                sent += _varint(field.number << 3) + _varint(draw(st.integers(0, 9) | st.integers(0, 2**64 - 1)))
    return sent


def _length_delimited(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _job(**changes: Any) -> model_pb2.JobSpec:
    message = wire.job_spec_to_wire(
        JobSpec(name="ring", roles=(Role(count=3, command=("ring",), ports=(PortRequest(name="ring"),)),)),
    )
    message.MergeFrom(model_pb2.JobSpec(**changes))
    return message


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (_job(network="overlay"), "JobSpec.network is 'overlay'; known are host, bridge"),
        (model_pb2.JobSpec(name="ring"), "JobSpec.timeouts is missing"),
    ],
)
def test_a_message_that_is_no_job_is_refused(message: model_pb2.JobSpec, complaint: str) -> None:
    with pytest.raises(WireError, match=re.escape(complaint)):
        wire.job_spec_from_wire(message)


@pytest.mark.parametrize("port", [0, 65536])
def test_a_port_that_cannot_be_bound_is_refused(port: int) -> None:
    with pytest.raises(WireError, match=rf"PortLease\.host_port is {port}; it must be between 1 and 65535"):
        wire.port_lease_from_wire(model_pb2.PortLease(name="a", host_port=port, container_port=1))


@pytest.mark.parametrize("field", ["check_in", "grace", "run"])
def test_a_length_of_time_that_would_leave_the_calendar_is_refused(field: str) -> None:
    """Whoever may submit could have ended the coordinator with it."""
    message = _job()
    getattr(message.timeouts, field).seconds = 86_400 * 3651
    with pytest.raises(WireError, match=rf"Timeouts\.{field} is 3.15446e\+08 seconds; at most 3650 days are taken"):
        wire.job_spec_from_wire(message)


def test_a_pause_that_would_leave_the_calendar_is_refused() -> None:
    message = _job()
    message.restarts.backoff.seconds = 315_576_000_000
    with pytest.raises(WireError, match=r"RestartPolicy\.backoff is 3.15576e\+11 seconds"):
        wire.job_spec_from_wire(message)


@pytest.mark.parametrize("seconds", [-1, 221_845_392_001, 253_402_300_799, 2**62])
def test_a_time_of_another_age_is_refused(seconds: int) -> None:
    message = agents_pb2.ExecutionReport(execution="j-1-0", stage=agents_pb2.STAGE_ARMED)
    message.at.seconds = seconds
    with pytest.raises(
        WireError, match=r"ExecutionReport\.at is .* seconds after 1970; it must be between 1970 and 9000"
    ):
        wire.report_from_wire(message)


def test_a_goal_that_is_not_set_is_refused() -> None:
    with pytest.raises(WireError, match=r"DesiredExecution\.goal is 0, which is no goal"):
        wire.plan_from_wire(agents_pb2.Plan(revision=1, desired=[agents_pb2.DesiredExecution(execution="a-1-0")]))


def test_a_stage_of_a_later_version_is_refused() -> None:
    with pytest.raises(WireError, match=r"ExecutionReport\.stage is 99, which is no stage"):
        wire.report_from_wire(agents_pb2.ExecutionReport.FromString(b"\x10\x63"))


def test_a_plan_with_bytes_that_are_no_roster_is_refused() -> None:
    with pytest.raises(WireError, match=r"Plan\.rosters holds what is no roster"):
        wire.plan_from_wire(agents_pb2.Plan(revision=1, rosters=[b"\xff"]))


def test_rosters_in_plans_look_like_messages_on_the_wire() -> None:
    gang = model_pb2.Roster(job="j", roles="worker")
    inside = gang.SerializeToString()
    assert agents_pb2.Plan(rosters=[inside]).SerializeToString() == bytes([5 << 3 | 2, len(inside)]) + inside


def test_a_roster_of_thousands_is_packed() -> None:
    gang = _gang(2000)
    plan = wire.plan_to_wire(Plan(revision=1, rosters=(gang,)))
    assert len(plan.rosters[0]) * 5 < wire.roster_to_wire(gang).ByteSize()
    assert wire.plan_from_wire(plan).rosters == (gang,)


def test_a_table_whose_columns_differ_in_length_is_refused() -> None:
    message = wire.roster_to_wire(_gang(2))
    message.gpus = "[]"
    with pytest.raises(WireError, match=r"Roster\.nodes has 2 lines, and not all others have as many"):
        wire.roster_from_wire(message)


@pytest.mark.parametrize("column", ["roles", "nodes", "addresses", "checked_in"])
@pytest.mark.parametrize("text", ["", "a\n", "a\n\nb", 'a"\nb', "a\tx\nb"])
def test_a_table_with_what_would_not_be_one_word_in_a_file_is_refused(column: str, text: str) -> None:
    message = wire.roster_to_wire(_gang(2))
    setattr(message, column, text)
    with pytest.raises(
        WireError, match=rf"Roster\.{column} must be a line of letters, digits and -_\.:% for each member"
    ):
        wire.roster_from_wire(message)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("ports", ""),
        ("ports", "{}\n"),
        ("ports", '{"master": 1}, "x": {}\n{}'),
        ("ports", '{"master": "1"}\n{}'),
        ("exposed", '{"1": 2}\n{}'),
        ("exposed", "{}}\n{}"),
        ("gpus", '["a", ]\n[]'),
        ("gpus", '["a"], "b": []\n[]'),
        ("gpus", '["a\\"]\n[]'),
    ],
)
def test_a_table_with_json_that_would_not_stay_in_its_place_in_a_file_is_refused(column: str, text: str) -> None:
    message = wire.roster_to_wire(_gang(2))
    setattr(message, column, text)
    with pytest.raises(WireError, match=rf"Roster\.{column} must be a line of .* in JSON for each member"):
        wire.roster_from_wire(message)


def _gang(size: int) -> Roster:
    members = (
        Member(
            rank=rank,
            execution=execution_id(JobId("j"), 1, rank),
            role="worker",
            node=NodeId("n"),
            address="10.0.0.1",
            checked_in_at=NOW,
        )
        for rank in range(size)
    )
    return Roster.of(job=JobId("j"), job_name="train", attempt=1, network=Network.HOST, members=members)


def test_a_packed_roster_that_is_cut_off_is_refused() -> None:
    packed = zlib.compress(bytes(1000))
    with pytest.raises(WireError, match=r"Plan\.rosters is cut off"):
        wire.plan_from_wire(agents_pb2.Plan(revision=1, rosters=[packed[:-6]]))
    with pytest.raises(WireError, match=r"Plan\.rosters holds what is no roster"):
        wire.plan_from_wire(agents_pb2.Plan(revision=1, rosters=[b"\x78\xffrubbish"]))


@quick
@given(moment=st.datetimes(timezones=st.just(timezone(timedelta(hours=-7)))).filter(lambda at: 1970 < at.year < 9000))
def test_times_of_any_zone_travel_as_utc(moment: datetime) -> None:
    message = jobs_pb2.Transition()
    message.at.FromDatetime(moment)
    execution = jobs_pb2.Execution(id="a-1-0", role="worker", state="running")
    execution.transitions.add(state="queued", at=message.at)
    (transition,) = wire.execution_from_wire(execution).transitions
    assert transition == Transition(state=transition.state, at=moment)
    assert transition.at.utcoffset() == timedelta(0)


def test_errors_name_fields_that_exist() -> None:
    source = "".join(path.read_text() for path in Path(wire.__file__).parent.glob("*.py"))
    named = re.findall(r'"([A-Z]\w+)\.(\w+)"', source)
    assert len(named) > 60
    for message, field in named:
        assert field in _named(message).fields_by_name, f"{message}.{field}"
