"""Programs that run beside e2e tests tell what they printed, also to reports that are written after their end."""

import sys
from pathlib import Path

from tests.e2e.programs import Program


def printing(directory: Path) -> Program:
    """One that has printed a word, and ended."""
    program = Program("printer", [sys.executable, "-c", "print('hello')"], log=directory / "printer.log")
    assert program.wait(60) == 0
    return program


def test_what_a_program_has_printed_is_there_after_its_end(tmp_path: Path) -> None:
    assert printing(tmp_path).output == "hello\n"


def test_a_log_that_was_removed_with_its_directory_does_not_end_the_report_of_a_failure(tmp_path: Path) -> None:
    program = printing(tmp_path)
    program.log.unlink()

    assert program.output == f"(the log {program.log} was removed)"
