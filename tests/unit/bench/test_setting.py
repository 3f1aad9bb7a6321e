"""Peers that are missing, programs that are not ours, and what workers stamped."""

from pathlib import Path

import pytest

from bench.figures import Findings
from bench.quiet import ticks_of_others
from bench.scratch import NEEDS, PeerMissingError, Scratch, missing_of
from bench.setting import Setting, Turns, stamps

REAPER = 100


class BareScratch(Scratch):
    """Has nothing, and can install nothing."""

    def need(self, peer: str) -> None:
        raise PeerMissingError(f"{peer} is missing")


def setting(tmp_path: Path, *peers: str) -> Setting:
    return Setting(
        scratch=BareScratch(tmp_path),
        findings=Findings(machine={}),
        peers=frozenset(peers),
        quick=True,
        patience=0,
        largest=8,
        fleets=(),
    )


def test_a_peer_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    it = setting(tmp_path, "slurm")
    assert not it.has("slurm")
    assert it.findings.remarks == ["slurm is missing"]


def test_a_peer_that_was_not_asked_for_is_named_too(tmp_path: Path) -> None:
    it = setting(tmp_path, "slurm")
    assert not it.has("ray")
    assert it.findings.remarks == ["ray was not measured: it was not asked for (--peers)"]


@pytest.mark.parametrize("peer", ["docker", "compiler"])
def test_all_programs_of_a_peer_are_missing_where_there_are_none(peer: str, tmp_path: Path) -> None:
    programs = [each for each in NEEDS[peer] if not each.startswith("/")]
    assert [each for each in missing_of(peer, path=str(tmp_path)) if each in programs] == programs


def test_a_program_that_is_there_is_not_missing(tmp_path: Path) -> None:
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    assert missing_of("compiler", path=str(tmp_path)) == []


def test_what_is_below_the_reaper_is_ours_whoever_started_it() -> None:
    processes = {1: (0, 5), REAPER: (1, 10), 101: (REAPER, 20), 102: (101, 40), 200: (1, 7), 201: (200, 3)}
    assert ticks_of_others(processes, {REAPER}) == 5 + 7 + 3


def test_a_process_whose_parent_ended_while_it_was_looked_at_is_not_ours() -> None:
    assert ticks_of_others({1: (0, 0), REAPER: (1, 10), 300: (299, 4)}, {REAPER}) == 4


def test_stamps_are_the_times_and_how_many_addresses_were_known(tmp_path: Path) -> None:
    (tmp_path / "all").write_text("0 1000 2000 8\n1 1500 2500 8\n")
    assert stamps(tmp_path / "all") == [(1000, 2000, 8), (1500, 2500, 8)]
    assert stamps(tmp_path / "none") == []


def test_of_turns_all_but_the_first_are_kept() -> None:
    turns = Turns(2)
    for turn in turns:
        turns.keep({"ours": turn})
        turns.keep({"theirs": 10 * turn, "of both": 0})
    assert turns.found == {"ours": [1, 2], "theirs": [10, 20], "of both": [0, 0]}
