"""Placeholders: each execution finds its own values, and nothing else is touched."""

from dataclasses import replace

import pytest

from agent.core.launching.expansion import expanded
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.jobs.failure import ExecutionError
from muster.domain.jobs.job import InlineFile, Network, PortRequest, Role
from muster.domain.jobs.placeholders import ALONE
from tests.unit.agent.core.gang_builders import SITE, gang, launched, workers
from tests.unit.agent.core.ledger_builders import assignment, roster


def runs(text: str, *, image: str | None = None, network: Network = Network.HOST) -> list[str]:
    """What each of three executions runs where the job says this text, by rank."""
    orders = [_saying(each, text, image) for each in gang(workers(3), image=image, network=network)]
    return [_role(each).command[0] for each in launched(orders)]


def _saying(order: Assignment, text: str, image: str | None) -> Assignment:
    ports = (PortRequest(name="http", port=8080 if order.network is Network.BRIDGE else None),)
    role = replace(order.role, command=(text,), ports=ports, expand=True)
    return replace(order, role=role if image is None else replace(role, image=image))


def _role(each: Launch) -> Role:
    assert each.role is not None
    return each.role


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("{{muster:rank}}/{{muster:world_size}}", "0/3", "2/3"),
        ("{{muster:job}}-{{muster:attempt}}", "j-1", "j-1"),
        ("{{muster:project}} {{muster:role}} {{muster:name}}", "default worker worker-0", "default worker worker-2"),
        ("{{muster:node}}={{muster:address}}", "node-0=10.0.0.1", "node-2=10.0.0.3"),
        ("tcp://{{muster:master}}:{{muster:master-port}}", "tcp://10.0.0.1:20000", "tcp://10.0.0.1:20000"),
        ("{{muster:config}} {{muster:outputs}}", "/muster/config /muster/outputs", "/muster/config /muster/outputs"),
        ("{{muster:address:worker-1}} {{muster:host:worker-1}}", "10.0.0.2 10.0.0.2", "10.0.0.2 10.0.0.2"),
        ("{{muster:port:http}} {{muster:port:worker-1:http}}", "20001 20010", "20020 20010"),
        ("${RANK} {{rank}} {muster:rank} {{ muster:rank }}", *["${RANK} {{rank}} {muster:rank} {{ muster:rank }}"] * 2),
    ],
)
def test_each_execution_has_its_own_values(text: str, first: str, last: str) -> None:
    told = runs(text)
    assert (told[0], told[2]) == (first, last)


def test_a_container_listens_inside_and_is_reached_by_name() -> None:
    text = "{{muster:host:worker-1}} {{muster:port:http}} {{muster:port:worker-1:http}}"
    assert runs(text, image="i", network=Network.BRIDGE)[0] == "worker-1 8080 20010"


def test_all_that_a_role_runs_is_filled_but_what_is_no_text() -> None:
    binary = InlineFile(path="b", content=b"\xff{{muster:rank}}")
    role = Role(
        image="i",
        entrypoint=("a{{muster:rank}}",),
        command=("b{{muster:rank}}",),
        env={"A": "{{muster:rank}}", "{{muster:rank}}": ""},
        files=(InlineFile(path="{{muster:rank}}", content=b"x {{muster:rank}}", executable=True), binary),
        expand=True,
    )
    assert expanded(assignment(1, role=role), roster(), SITE) == replace(
        role,
        entrypoint=("a1",),
        command=("b1",),
        env={"A": "1", "{{muster:rank}}": ""},
        files=(InlineFile(path="{{muster:rank}}", content=b"x 1", executable=True), binary),
    )


def test_without_the_key_nothing_is_touched() -> None:
    order = gang(workers(1))[0]
    [told] = launched([replace(order, role=replace(order.role, env={"A": "{{muster:rank}}"}))])
    assert (told.role, told.env["A"]) == (None, "{{muster:rank}}")


def test_variables_of_the_launch_are_the_filled_ones() -> None:
    order = gang(workers(1))[0]
    [told] = launched([replace(order, role=replace(order.role, env={"A": "r{{muster:rank}}"}, expand=True))])
    assert told.env["A"] == "r0"


def test_a_placeholder_that_nobody_knows_is_an_error_of_this_execution() -> None:
    with pytest.raises(ExecutionError, match=r"expand: \{\{muster:workflow\}\} has no value in this execution"):
        runs("{{muster:workflow}}")


@pytest.mark.parametrize("name", ALONE)
def test_every_placeholder_that_the_rule_book_takes_has_a_value(name: str) -> None:
    assert all(runs(f"{{{{muster:{name}}}}}"))
