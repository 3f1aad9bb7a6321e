"""Inventories, and everything that can be wrong with one."""

from pathlib import Path

import pytest

from muster.bootstrap.inventory import InventoryError, MachineInventory, read_inventory
from muster.bootstrap.request import MachineRequest, Setting
from muster.bootstrap.ssh.target import Target, parse_jumps, parse_target
from muster.domain.errors import InvalidJobError


def test_an_inventory_lists_nodes_and_what_they_have_in_common() -> None:
    text = """\
coordinator: gpu.example.org:7460
defaults:
  user: ops
  key: /keys/fleet
  jump: [bastion.example.org, ops@inner:2222]
  pool: a100
  labels: {site: b}
  agent: {mount-root: [/data], log-limit: 5}
nodes:
  - host: 10.0.0.11
  - host: root@10.0.0.12:22022
    name: big
    jump: none
    labels: {rack: a7}
    address: ib0
    ports: 40000-40999
    agent: {processes: true}
"""
    jumps = (Target(host="bastion.example.org"), Target(host="inner", user="ops", port=2222))
    key = Path("/keys/fleet")
    shared: dict[str, Setting] = {"mount-root": ("/data",), "log-limit": 5}
    assert read_inventory(text, "f") == MachineInventory(
        coordinator="gpu.example.org:7460",
        wishes=(
            MachineRequest(
                target=Target(host="10.0.0.11", user="ops", key=key, jumps=jumps),
                labels={"site": "b", "pool": "a100"},
                settings=shared,
            ),
            MachineRequest(
                target=Target(host="10.0.0.12", user="root", port=22022, key=key, jumps=()),
                name="big",
                address="ib0",
                ports=(40000, 40999),
                labels={"site": "b", "rack": "a7", "pool": "a100"},
                settings={**shared, "processes": True},
            ),
        ),
    )


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["f:1:1: must be a map with keys such as coordinator and defaults", "f:1:1: nodes: must be a list"]),
        ("nodes: []\n", ["f:1:1: nodes: must be a list of nodes"]),
        ("nodes:\n- hots: a\n", ['f:2:3: nodes[0].hots: unknown key; did you mean "host"?', "f:2:3: nodes[0]: has no"]),
        ("hosts:\n- host: a\n", ['f:1:1: hosts: unknown key; did you mean "nodes"?', "f:1:1: nodes: must be a list"]),
        ("nodes:\n- host: a\n  port: 99999\n", ["f:3:9: nodes[0].port: must be a port from 1 to 65535"]),
        ("nodes:\n- host: a\n  ports: 9-1\n", ["f:3:10: nodes[0].ports: must be a range of ports"]),
        ("nodes:\n- host: a\n  labels: x\n", ["f:3:11: nodes[0].labels: must be a map of labels"]),
        ("nodes:\n- host: a\n  agent: {state: /x}\n", ["f:3:3: nodes[0].agent: cannot hold 'state'"]),
        ("nodes:\n- host: a\n- host: a\n", ["f:3:3: nodes[1]: a is in the list twice"]),
        ("nodes:\n- {host: a, name: n}\n- {host: b, name: n}\n", ["f:3:3: nodes[1]: the name n is in the list twice"]),
        ("nodes:\n- host: a b\n", ["f:2:9: nodes[0].host: 'a b' is nothing that SSH could reach"]),
        ("coordinator: here\nnodes:\n- host: a\n", ["f:1:14: coordinator: must be HOST:PORT"]),
        ("nodes: [\n", ["f:2:1: is not valid YAML"]),
        ("nodes:\n- host: a\nnodes: []\n", ["f:3:1: nodes: stands here a second time"]),
    ],
)
def test_every_problem_is_told_with_its_place(text: str, problems: list[str]) -> None:
    with pytest.raises(InventoryError) as caught:
        read_inventory(text, "f")
    lines = [line for line in str(caught.value).splitlines() if line.startswith("f:")]
    assert len(lines) == len(problems), lines
    assert [line[: len(wanted)] for line, wanted in zip(lines, problems, strict=True)] == problems


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("a", Target(host="a")),
        ("ops@a.b-c.d:22", Target(host="a.b-c.d", user="ops", port=22)),
        ("[fd00::1]:22", Target(host="fd00::1", port=22)),
        ("ops@fd00::1", Target(host="fd00::1", user="ops")),
    ],
)
def test_targets_are_written_as_for_ssh(text: str, target: Target) -> None:
    assert parse_target(text) == target
    assert parse_target(str(target)) == target


@pytest.mark.parametrize("text", ["", "@a", "a:", "a:0", "a:65536", "a b", "-oProxyCommand=x", "a/b", "u@"])
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(InvalidJobError):
        parse_target(text)


def test_jumps_keep_their_order() -> None:
    assert parse_jumps("a, u@b:1") == (Target(host="a"), Target(host="b", user="u", port=1))
