"""What a supervisor does about its cgroups and its place in line when memory is short, on files of the same names."""

from pathlib import Path

import pytest

from agent.runtimes.kernel.confinement import Confinement


def test_what_was_killed_for_memory_before_is_not_told_of_the_program_that_comes_next(tmp_path: Path) -> None:
    events = tmp_path / "memory.events"
    (tmp_path / "cgroup.procs").touch()
    events.write_text("oom_kill 0\n")
    confinement = Confinement([(str(tmp_path), str(tmp_path))])
    confinement.enter()
    events.write_text("oom_kill 1\n")
    assert confinement.out_of_memory()
    confinement.rest()
    confinement.enter()
    assert not confinement.out_of_memory()
    events.write_text("oom_kill 2\n")
    assert confinement.out_of_memory()


@pytest.mark.parametrize(("own", "inside"), [("-900", "0"), ("0", "0"), ("200", "200")])
def test_a_supervisor_has_the_score_of_programs_only_while_it_starts_one(tmp_path: Path, own: str, inside: str) -> None:
    score = tmp_path / "oom_score_adj"
    score.write_text(own)
    confinement = Confinement((), str(score))
    confinement.enter()
    assert score.read_text()[: len(inside)] == inside
    score.write_text(inside)
    confinement.leave()
    assert score.read_text() == own
