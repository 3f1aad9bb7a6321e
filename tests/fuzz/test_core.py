"""What the wire lets through, the coordinator's core can live with: nobody's message ends it."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import given

from coordinator.core.answers import Accepted
from coordinator.core.events import ExecutionsReported, InventoryChanged, TimePassed
from muster import wire
from muster.domain.errors import InvalidJobError
from muster.domain.ids import NodeId
from muster.domain.jobs.rules.job_rules import refuse_faults
from muster.rpc.v1 import agents_pb2, model_pb2
from muster.wire import WireError
from tests.builders import World, inventory, role, spec
from tests.fuzz.effort import fuzzed, fuzzed_less
from tests.fuzz.messages import NUMBERS, anything, damaged, seeds
from tests.unit.coordinator.core.obedient_agents import Agent
from tests.unit.jobfile.valid_jobs import any_job

NODES = {"a": 4, "b": 4}
SMALL = 40
"""Executions; larger jobs take long to look after, and are no worse."""
PAUSES = (0.0, 1.0, 30.0, 600.0)
ROUNDS = 12
AGES = timedelta(days=400)
"""Time that passes at once, as for a coordinator that was asleep: a job may ask for a start in each second of it."""


@fuzzed_less
@given(wanted=any_job, seed=seeds)
def test_a_job_that_was_valid_and_still_is_lives_and_ends(wanted: Any, seed: int) -> None:
    chance = Random(seed)
    try:
        job = refuse_faults(wire.job_spec_from_wire(damaged(wire.job_spec_to_wire(wanted), seed)))  # type: ignore[arg-type]  # a message of any job is one of a job
    except (InvalidJobError, WireError):
        return
    if job.size <= SMALL:
        _lives(World(*NODES.items()), job, chance)


@fuzzed
@given(seed=seeds)
def test_a_job_of_ours_with_a_few_changes_lives_and_ends(seed: int) -> None:
    chance = Random(seed)
    ours = spec(roles=(role(1, 1, name="master"), role(2, 1)))
    message: Any = damaged(wire.job_spec_to_wire(ours), seed)
    for span in (message.timeouts.check_in, message.timeouts.run, message.timeouts.grace, message.restarts.backoff):
        if chance.random() < 0.3:
            span.seconds = chance.choice(NUMBERS)
    try:
        job = refuse_faults(wire.job_spec_from_wire(message))
    except (InvalidJobError, WireError):
        return
    if job.size <= SMALL:
        _lives(World(*NODES.items()), job, chance)


def _lives(world: World, job: Any, chance: Random) -> None:
    agents = [Agent(world, NodeId(node)) for node in NODES]
    if not isinstance(answer := world.try_submit(job), Accepted):
        return
    for _ in range(ROUNDS):
        for agent in agents:
            for name in agent.to_do():
                agent.work(name, code=chance.choice((0, 0, 1)))
            agent.deliver_all()
            if not agent.connected:
                agent.connect()
        world.advance(chance.choice(PAUSES))
    _ages_pass(world)
    world.stop(answer.job.id)
    _ages_pass(world)
    world.restart()


def _ages_pass(world: World) -> None:
    world.now += AGES
    world.turn(TimePassed())


@fuzzed
@given(seed=seeds)
def test_whatever_an_agent_reports_of_its_executions_the_core_goes_on(seed: int) -> None:
    chance, world = Random(seed), World(*NODES.items())
    job = world.submit(spec(2, gpus=1))
    names = list(world.cluster.executions)
    for _ in range(12):
        message: Any = anything(agents_pb2.ExecutionReport, chance.getrandbits(64))
        message.stage = chance.randint(1, 7)
        message.at.seconds, message.at.nanos = chance.choice((0, 1, 1_780_000_000, 253_402_300_799)), 0
        if chance.random() < 0.9:
            for field in ("exit", "failure"):
                message.ClearField(field)
            message.exit.code, message.failure.kind, message.address = 1, "user_error", "10.0.0.1"
            del message.ports[:]
        with suppress(WireError):
            said = replace(wire.report_from_wire(message), execution=chance.choice(names))
            world.turn(ExecutionsReported(node=NodeId(chance.choice("ab")), reports=(said,)))
        world.advance(chance.choice(PAUSES))
    world.stop(job)
    _ages_pass(world)
    world.restart()


@fuzzed
@given(seed=seeds)
def test_whatever_a_node_says_that_it_has_the_core_goes_on(seed: int) -> None:
    chance, world = Random(seed), World(*NODES.items())
    world.submit(spec(2, gpus=1))
    for _ in range(8):
        ours: Any = wire.inventory_to_wire(inventory("a", 4))
        found: Any = damaged(ours, chance.getrandbits(64))
        if chance.random() < 0.2:
            found = anything(model_pb2.Inventory, chance.getrandbits(64))
        with suppress(WireError):
            having = wire.inventory_from_wire(found)
            world.turn(InventoryChanged(node=NodeId("a"), inventory=having))
            world.connect("a", having)
        world.try_submit(spec(chance.randint(1, 3), gpus=chance.randint(0, 2)))
        world.advance(chance.choice(PAUSES))
