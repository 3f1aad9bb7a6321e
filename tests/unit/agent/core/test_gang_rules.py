"""What a node checks before it runs a command for another one."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from agent.core.door.gang_rules import CommandFault, CommandRejected, GangPart, Nonces, accepted, signed
from muster.domain.attachments.frame import COMMAND_NONCE, GangCommand
from muster.domain.ids import AttemptId, NodeId
from tests.unit.agent.core.ledger_builders import JOB, execution, roster
from tests.unit.attachment_values import gang_commands

A, B = NodeId("node-0"), NodeId("node-1")
SECRET = b"secret of the attempt"
PART = GangPart(attempt=AttemptId(JOB, 1), secret=SECRET, roster=roster(3), running={1: execution(1)})
COMMAND = GangCommand(
    job=JOB, attempt=1, from_rank=0, to_rank=1, node=A, nonce=b"n" * COMMAND_NONCE, words=("orted",), env=("A=b",)
)


def verdict(command: GangCommand, part: GangPart | None = PART, **changes: Any) -> object:
    """The execution, or the kind of fault."""
    given = {"here": B, "shown": True, "nonces": Nonces(), **changes}
    found = accepted(command, part, **given)
    return found.fault if isinstance(found, CommandRejected) else found


def test_a_command_that_proves_itself_runs_in_the_execution_that_it_names() -> None:
    assert verdict(signed(COMMAND, SECRET, B)) == execution(1)


@pytest.mark.parametrize(
    "change",
    [
        {"job": "other"},
        {"attempt": 2},
        {"from_rank": 2},
        {"to_rank": 2},
        {"node": NodeId("node-2")},
        {"nonce": b"m" * COMMAND_NONCE},
        {"words": ("orted", "")},
        {"words": ("orte", "d")},
        {"words": ("orted", "A=b"), "env": ()},
        {"env": ("A=c",)},
        {"daemon": True},
        {"has_input": True},
    ],
    ids=str,
)
def test_a_signature_covers_every_field(change: dict[str, Any]) -> None:
    changed = replace(signed(COMMAND, SECRET, B), **change)
    assert verdict(changed) is CommandFault.UNPROVEN


def test_a_signature_counts_for_one_node_and_one_secret() -> None:
    assert verdict(signed(COMMAND, SECRET, NodeId("node-2"))) is CommandFault.UNPROVEN
    assert verdict(signed(COMMAND, b"another", B)) is CommandFault.UNPROVEN
    assert verdict(COMMAND) is CommandFault.UNPROVEN


def test_a_node_must_have_shown_itself_and_speaks_for_its_own_ranks() -> None:
    assert verdict(signed(COMMAND, SECRET, B), shown=False) is CommandFault.UNPROVEN
    for rank in (1, 2, 7):
        assert verdict(signed(replace(COMMAND, from_rank=rank), SECRET, B)) is CommandFault.UNPROVEN


def test_nothing_is_done_for_an_attempt_that_is_not_here() -> None:
    assert verdict(signed(COMMAND, SECRET, B), None) is CommandFault.UNKNOWN
    assert verdict(signed(COMMAND, b"", B), replace(PART, secret=b"")) is CommandFault.UNKNOWN


def test_an_execution_must_run_here() -> None:
    command = signed(replace(COMMAND, to_rank=2), SECRET, B)
    assert verdict(command) is CommandFault.NOT_HERE
    assert verdict(command, replace(PART, ahead=frozenset({2}))) is CommandFault.TOO_EARLY
    assert verdict(command, replace(PART, roster=None)) is CommandFault.TOO_EARLY


def test_a_command_counts_once() -> None:
    nonces, command = Nonces(), signed(COMMAND, SECRET, B)
    assert verdict(command, nonces=nonces) == execution(1)
    assert verdict(command, nonces=nonces) is CommandFault.UNPROVEN


def test_a_command_that_proves_nothing_takes_no_place_among_those_that_were_seen() -> None:
    nonces = Nonces()
    assert verdict(signed(COMMAND, b"another", B), nonces=nonces) is CommandFault.UNPROVEN
    assert verdict(signed(COMMAND, SECRET, B), nonces=nonces) == execution(1)


def test_the_oldest_of_many_nonces_are_forgotten() -> None:
    nonces = Nonces(most=2)
    assert [nonces.take(each) for each in (b"1", b"2", b"1", b"3", b"1", b"3")] == [
        True,
        True,
        False,
        True,
        True,
        False,
    ]


@given(gang_commands)
def test_whatever_a_command_says_is_signed_and_accepted_or_refused(command: GangCommand) -> None:
    made = signed(command, SECRET, B)
    part = replace(PART, attempt=command.attempt_id, running={command.to_rank: execution(1)})
    assert verdict(made, part) in {execution(1), CommandFault.UNPROVEN}
    assert verdict(replace(made, words=(*made.words, "x")), part) is CommandFault.UNPROVEN
