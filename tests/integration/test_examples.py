"""The examples as examples/README.md says: submitted to what `muster up` runs."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "examples" / "README.md").read_text()
PROGRAM = [sys.executable, "-c", "from muster.cli.main import main; main()"]
WITHIN = 120.0


def _lines(word: str) -> list[list[str]]:
    """Command lines of the page that begin with `muster WORD`."""
    return [shlex.split(line, comments=True) for line in re.findall(rf"^muster {word} .*$", README, re.MULTILINE)]


def _environment(home: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    return {**own, "MUSTER_HOME": str(home), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Path]:
    """The MUSTER_HOME of a user whose `muster up` runs."""
    (words,) = _lines("up")
    with subprocess.Popen(
        [*PROGRAM, *words[1:], "--listen", "127.0.0.1:0", "--no-docker"],
        env=_environment(tmp_path), stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        assert any("Ctrl-C stops all of it" in line for line in program.stdout)
        yield tmp_path
        program.terminate()


def test_what_needs_no_images_and_no_packages_runs_as_the_page_says(fleet: Path) -> None:
    alone = [words for words in _lines("submit") if "ring" in words[2] or words[2].endswith("echo/processes.yaml")]
    assert len(alone) == 2
    for words in alone:
        done = subprocess.run(
            [*PROGRAM, *words[1:]],
            cwd=ROOT, env=_environment(fleet), capture_output=True, text=True, check=False, timeout=WITHIN,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        assert done.stdout.count("right") == 3
