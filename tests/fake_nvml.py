"""Compiles the fake libnvidia-ml.so.1 and steers it: GPUs that a test can break while an agent watches them.

    nvml = FakeNvml(tmp_path, gpus=8)
    agent = start_agent(env={**os.environ, **nvml.environ})  # whatever starts an agent
    nvml.set({"gpu3.lost": 1})

The keys are listed at the top of `fakenvml/fakenvml.c`.
"""

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

LIBRARY = "libnvidia-ml.so.1"
SOURCE = Path(__file__).parent / "fakenvml" / "fakenvml.c"
COMPILER = shutil.which("gcc") or shutil.which("cc")
NO_COMPILER = "no C compiler (gcc or cc), which builds the fake NVML library"


class FakeNvml:
    """One node's fake driver, in a directory of its own."""

    def __init__(self, directory: Path, *, gpus: int, node: int = 1, old_driver: bool = False) -> None:
        self.directory = directory
        self._node = node
        self._settings: dict[str, str | int] = {"gpus": gpus, "node": node}
        self._config = directory / "gpus.conf"
        directory.mkdir(parents=True, exist_ok=True)
        self.set({})
        (directory / LIBRARY).write_bytes(compiled_library(old_driver=old_driver))

    @property
    def environ(self) -> dict[str, str]:
        """What a process needs in its environment to see these GPUs, and no others."""
        return {"LD_LIBRARY_PATH": str(self.directory), "FAKE_NVML": str(self._config)}

    def uuid(self, index: int) -> str:
        """The UUID of a GPU."""
        return f"GPU-{self._node:08x}-0000-0000-0000-{index:012x}"

    def slice_uuid(self, index: int, place: int) -> str:
        """The UUID of a MIG device of a GPU."""
        return f"MIG-{self._node:08x}-0000-0000-{place:04x}-{index:012x}"

    def set(self, settings: Mapping[str, str | int]) -> None:
        """Change some settings; the library sees all of them at once, from its next call on."""
        self._settings |= settings
        text = "".join(f"{key}={value}\n" for key, value in self._settings.items())
        fresh = self._config.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self._config)

    def raise_xid(self, index: int, xid: int, instance: int | None = None) -> None:
        """Let the driver report an Xid, on one MIG instance if that is given."""
        number = int(self._settings.get(f"gpu{index}.xid_seq", 0)) + 1
        where = {} if instance is None else {f"gpu{index}.xid_gi": instance}
        self.set({f"gpu{index}.xid": xid, f"gpu{index}.xid_seq": number, **where})


@functools.cache
def compiled_library(*, old_driver: bool = False) -> bytes:
    """The library, compiled once per run of the tests; an old driver lacks the newer symbols."""
    assert COMPILER, NO_COMPILER
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", *(["-DOLD_DRIVER"] if old_driver else [])]
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory, LIBRARY)
        subprocess.run([COMPILER, *options, "-o", str(target), str(SOURCE)], check=True, timeout=60)
        return target.read_bytes()
