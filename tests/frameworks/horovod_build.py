"""Horovod, which is on PyPI as sources only and asks for an older C++ than PyTorch."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HOROVOD = "horovod==0.28.1"
OPTIONS = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}
LIMIT = 3600.0
"""Seconds for the build; it takes a quarter of an hour on a busy core."""


def horovod_wheel(python: Path, directory: Path) -> Path:
    """The wheel, built with the PyTorch of this Python. The test is skipped where that cannot be done."""
    _pip(python, "download", "--no-binary=:all:", f"--dest={directory}", HOROVOD)
    [archive] = directory.glob("horovod-*.tar.gz")
    shutil.unpack_archive(archive, directory)
    tree = directory / archive.name.removesuffix(".tar.gz")
    for file in (tree / "CMakeLists.txt", tree / "horovod/torch/CMakeLists.txt"):
        file.write_text(file.read_text().replace("CMAKE_CXX_STANDARD 14", "CMAKE_CXX_STANDARD 17"))
    _pip(python, "wheel", f"--wheel-dir={directory}", str(tree))
    [wheel] = directory.glob("horovod-*.whl")
    return wheel


def _pip(python: Path, action: str, *words: str) -> None:
    line = (str(python), "-m", "pip", action, "--quiet", "--no-deps", "--no-build-isolation", *words)
    environment = {**os.environ, **OPTIONS}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode != 0:
        pytest.skip(f"{HOROVOD} cannot be built: {done.stderr.strip()[-1000:]}")
