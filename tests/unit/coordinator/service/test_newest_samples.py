"""The newest samples of nodes: what is kept of them, and for how long."""

import asyncio

from coordinator.service.watching.newest_samples import MOST_SAMPLES, SAMPLE_AGE, NewestSamples
from coordinator.signals import ANY_NODE, Listener, SampledNode
from muster.domain.ids import NodeId
from muster.domain.telemetry.sample import MAX_SAMPLE

A, B = NodeId("a"), NodeId("b")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_of_each_node_the_newest_is_kept() -> None:
    samples = NewestSamples(Clock())
    samples.put(A, b"first")
    samples.put(B, b"other")
    known = samples.number
    samples.put(A, b"second")

    assert dict(samples.since(0)) == {A: b"second", B: b"other"}
    assert dict(samples.since(known)) == {A: b"second"}
    assert dict(samples.since(0, [B, NodeId("nobody")])) == {B: b"other"}


def test_what_is_old_is_told_no_more() -> None:
    clock = Clock()
    samples = NewestSamples(clock)
    samples.put(A, b"old")
    clock.now = SAMPLE_AGE
    samples.put(B, b"new")
    assert set(dict(samples.since(0))) == {A, B}

    clock.now += 0.001
    assert set(dict(samples.since(0))) == {B}


def test_nothing_and_too_much_are_no_samples() -> None:
    samples = NewestSamples(Clock())
    samples.put(A, b"")
    samples.put(B, bytes(MAX_SAMPLE + 1))
    assert samples.number == 0

    samples.put(A, bytes(MAX_SAMPLE))
    assert [node for node, _ in samples.since(0)] == [A]


def test_nodes_that_tell_much_push_out_the_oldest() -> None:
    samples = NewestSamples(Clock())
    nodes = [NodeId(f"node-{number}") for number in range(MOST_SAMPLES // MAX_SAMPLE + 3)]
    for node in nodes:
        samples.put(node, bytes(MAX_SAMPLE))

    assert [node for node, _ in samples.since(0)] == nodes[3:]


async def test_who_waits_for_a_node_hears_of_that_node_alone() -> None:
    samples, of_a, of_any = NewestSamples(Clock()), Listener(), Listener()
    with samples.telling(of_a, [A]), samples.telling(of_any, None):
        samples.put(B, b"b")
        assert await of_any.wait() == {ANY_NODE}
        waiting = asyncio.ensure_future(of_a.wait())
        samples.put(A, b"a")
        assert await waiting == {SampledNode(A)}
    samples.put(A, b"nobody is told any more")
