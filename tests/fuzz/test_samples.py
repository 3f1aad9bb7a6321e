"""Samples as nodes send them: what is let through unread can be read by whoever gets it, whatever the bytes are."""

from hypothesis import given
from hypothesis import strategies as st

from muster.domain.ids import NodeId
from muster.domain.telemetry.sample import Sample, UnreadSample
from muster.rpc.v1 import telemetry_pb2 as pb
from muster.wire.checks import WireError
from muster.wire.telemetry.samples import (
    executions_of_sample,
    node_sample_from_wire,
    sample_from_bytes,
    sample_to_wire,
    unread_sample_to_wire,
)
from tests.fuzz.effort import fuzzed
from tests.fuzz.messages import anything, damaged, seeds
from tests.unit.sample_values import samples

NODE = NodeId("a")


def is_read_alike(data: bytes) -> None:
    """Whether bytes are a sample, and what is in it, is said alike by all who look at them."""
    try:
        executions = executions_of_sample(data)
    except WireError as refused:
        try:
            sample_from_bytes(data)
        except WireError as error:
            assert str(error) == str(refused)  # noqa: PT017 - both are refused
        else:
            raise AssertionError("it can be read, and was refused") from refused
        return
    read = sample_from_bytes(data)
    assert [each for each, _ in read.executions] == executions
    assert node_sample_from_wire(unread_sample_to_wire(UnreadSample(NODE, data))) == (NODE, read)


@fuzzed
@given(data=st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    is_read_alike(data)


@fuzzed
@given(seed=seeds)
def test_messages_with_any_content(seed: int) -> None:
    is_read_alike(anything(pb.Telemetry, seed).SerializeToString())


@fuzzed
@given(sample=samples, seed=seeds)
def test_samples_and_what_they_become_with_a_few_changes(sample: Sample, seed: int) -> None:
    is_read_alike(sample_to_wire(sample).SerializeToString())
    is_read_alike(damaged(sample_to_wire(sample), seed).SerializeToString())
