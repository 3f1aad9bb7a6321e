"""The example that trains with PyTorch as plain processes, as examples/README.md says, with the image's packages."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import images
from tests.e2e.images import INTERPRETER, ImageUnavailableError

ROOT = Path(__file__).parents[2]
README = (ROOT / "examples" / "README.md").read_text()
PROGRAM = [sys.executable, "-c", "from muster.cli.main import main; main()"]
WITHIN = 300.0


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for PATH, whose `python3` has what the page has people install."""
    try:
        image = images.digits()
    except ImageUnavailableError as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("packages")
    subprocess.run(["tar", "-xf", image.tar, "-C", directory, "--wildcards", "*-packages/*"], check=True)
    (packages,) = directory.glob("**/*-packages/")
    program = directory / "bin" / "python3"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {INTERPRETER} "$@"\n')
    program.chmod(0o755)
    return program.parent


def _line(pattern: str) -> list[str]:
    """The command line of the page that has these words."""
    (found,) = re.findall(rf"^muster {pattern}.*$", README, re.MULTILINE)
    return [*PROGRAM, *shlex.split(found, comments=True)[1:]]


@pytest.fixture
def environment(tmp_path: Path, python: Path) -> Iterator[dict[str, str]]:
    """The environment of a user whose `muster up` runs."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    path = f"{python}:{own['PATH']}"
    environment = {**own, "MUSTER_HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": path}
    up = [*_line("up "), "--listen", "127.0.0.1:0", "--no-docker"]
    with subprocess.Popen(up, env=environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert any("Ctrl-C stops all of it" in line for line in program.stdout)
        yield environment
        program.terminate()


def test_pytorch_trains_on_this_machine_alone(environment: dict[str, str]) -> None:
    command = _line("submit examples/ddp-digits/processes.yaml")
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=WITHIN
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"loss [\d.]+ -> [\d.]+; 9[\d.]+% of \d+ held-out digits recognised", done.stdout)
