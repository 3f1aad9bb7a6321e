"""Images for `docker import`, made from what this machine has: no registry and no other distribution is needed.

The Python in them is the one that runs the tests, with the shared libraries that it loads, so that pip here chooses
packages that fit. Tar files are kept in a cache, named after their recipe: this module, the interpreter, the packages.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "muster-tests"

INTERPRETER = Path(sys.executable).resolve()
"""Not the virtual environment's, which is only a link."""

TORCH = "torch==2.13.0"
DIGITS_PACKAGES = (TORCH, "numpy", "scikit-learn")

WARM_UP = """
import torch.distributed, torch.nn.parallel
from sklearn.datasets import load_digits
load_digits()
"""
"""Run once when the image is made: proves the packages, and leaves the byte code of just what is used."""

LOADED_LATER = ("libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1")
"""Libraries that packages expect of every system."""

STANDARD_LIBRARY_LEFT_OUT = (
    *("test", "tests", "idlelib", "tkinter", "_tkinter*", "turtledemo", "ensurepip", "lib2to3"),
    *("config-*", "*-packages", "*.opt-?.pyc"),
)
TORCH_LEFT_OUT = ("include", "share", "test")

KEPT = timedelta(days=30)
"""Tar files that nobody has used for so long go."""


class ImageUnavailableError(Exception):
    """The image cannot be made here; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A root file system in a tar file, and the name to import it under."""

    reference: str
    tar: Path


def busybox() -> Image:
    """A shell and its usual commands."""
    return _cached("muster/busybox", (), _add_shell)


def bare() -> Image:
    """One static program, a web server at /httpd, and a directory for everybody: no shell, tar or library."""
    return _cached("muster/bare", (), _add_server)


def python() -> Image:
    """busybox and Python."""
    return _cached("muster/python", _interpreter(), _add_shell, _add_python)


def digits() -> Image:
    """busybox, Python, PyTorch for CPUs, and scikit-learn with its handwritten digits."""
    return _cached("muster/digits", (*_interpreter(), *DIGITS_PACKAGES), _add_shell, _add_python, _add_torch)


def with_packages(name: str, *packages: str) -> Image:
    """busybox, Python, and packages of PyPI with their programs."""
    return _cached(
        name, (*_interpreter(), *packages), _add_shell, _add_python, lambda root: _add_packages(root, packages)
    )


def with_programs(name: str, *parts: Path) -> Image:
    """busybox, and programs and directories of this machine at their places here, with the libraries that they load."""
    versions = (f"{part} {part.stat().st_size} {part.stat().st_mtime_ns}" for part in parts)
    return _cached(name, tuple(versions), _add_shell, lambda root: _add_programs(root, parts))


def _cached(name: str, recipe: Sequence[str], *layers: Callable[[Path], None]) -> Image:
    parts = [Path(__file__).read_text(), *recipe]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    tar = CACHE / f"{name.replace('/', '-')}-{key}.tar"
    CACHE.mkdir(parents=True, exist_ok=True)
    if tar.exists():
        tar.touch()
    else:
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            _build(Path(scratch), layers).replace(tar)
        _forget_old()
    return Image(reference=f"{name}:latest", tar=tar)


def _forget_old() -> None:
    limit = time.time() - KEPT.total_seconds()
    for tar in CACHE.glob("*.tar"):
        if tar.stat().st_mtime < limit:
            tar.unlink(missing_ok=True)


def _build(scratch: Path, layers: Sequence[Callable[[Path], None]]) -> Path:
    root = scratch / "root"
    for layer in layers:
        layer(root)
    tar = scratch / "image.tar"
    owner = ("--owner=0", "--group=0", "--numeric-owner")
    subprocess.run(["tar", "--create", f"--file={tar}", *owner, f"--directory={root}", "."], check=True)
    return tar


def _add_shell(root: Path) -> None:
    for directory in ("bin", "etc", "root", "usr/bin", "var"):
        (root / directory).mkdir(parents=True)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    busybox = shutil.which("busybox")
    if busybox is None:
        raise ImageUnavailableError("images need busybox; install busybox-static")
    shutil.copy(busybox, root / "bin/busybox")
    _add_libraries(root, [Path(busybox)])
    for command in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        link = root / "bin" / command
        if not link.exists():
            link.symlink_to("busybox")


def _add_server(root: Path) -> None:
    (root / "data").mkdir(parents=True)
    (root / "data").chmod(0o1777)
    shutil.copy(static_busybox(), root / "httpd")


def static_busybox() -> Path:
    """The one file of busybox, which is what its name says."""
    busybox = shutil.which("busybox")
    if busybox is None:
        raise ImageUnavailableError("images need busybox; install busybox-static")
    if subprocess.run(["ldd", busybox], capture_output=True, check=False).returncode == 0:
        raise ImageUnavailableError("the busybox of this machine needs libraries; install busybox-static")
    return Path(busybox)


def _add_python(root: Path) -> None:
    library = Path(sysconfig.get_path("stdlib"))
    left_out = shutil.ignore_patterns(*STANDARD_LIBRARY_LEFT_OUT)
    shutil.copytree(library, _inside(root, library), ignore=left_out, ignore_dangling_symlinks=True)
    shutil.copy(INTERPRETER, _inside(root, INTERPRETER))
    for name in ("python3", "python"):
        link = root / "usr/bin" / name
        if not link.exists():
            link.symlink_to(INTERPRETER)
    extensions = _inside(root, library).rglob("*.so")
    _add_libraries(root, [INTERPRETER, *extensions])


def _add_programs(root: Path, parts: Sequence[Path]) -> None:
    for part in parts:
        if part.is_dir():
            shutil.copytree(part, _inside(root, part), ignore_dangling_symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy(part, _inside(root, part))
    _add_libraries(
        root, [*(part for part in parts if part.is_file()), *(each for part in parts for each in part.rglob("*.so"))]
    )


def _add_libraries(root: Path, programs: Sequence[Path]) -> None:
    """Add what the loader loads for them, where it found it."""
    answer = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    found = {Path(path) for path in re.findall(r"(/\S+) \(0x", answer)}
    beside = {path.parent / name for path in found if path.name == "libc.so.6" for name in LOADED_LATER}
    for path in (*found, *(path for path in beside if path.exists())):
        shutil.copy(path, _inside(root, path))


def _add_packages(root: Path, packages: Sequence[str]) -> None:
    answer = _base_python("import site; print(site.getsitepackages()[0])")
    there = _inside(root, Path(answer.strip()))
    _pip(f"--target={there}", *packages)
    _add_libraries(root, list(there.rglob("*.so")))
    for program in (there / "bin").glob("*"):
        if program.read_bytes().startswith(b"#!"):
            program.write_text(re.sub(r"^#!.*", "#!/usr/bin/python3", program.read_text(), count=1))
        shutil.move(program, root / "usr/bin" / program.name)


def _add_torch(root: Path) -> None:
    answer = _base_python("import site; print(site.getsitepackages()[0])")
    packages = _inside(root, Path(answer.strip()))
    _refuse_gpu_build()
    _pip("--no-compile", f"--target={packages}", *DIGITS_PACKAGES)
    for name in TORCH_LEFT_OUT:
        shutil.rmtree(packages / "torch" / name, ignore_errors=True)
    for program in packages.glob("torch/bin/test_*"):
        program.unlink()
    for tests in [path for path in packages.rglob("tests") if path.is_dir()]:
        shutil.rmtree(tests)
    _base_python(WARM_UP, PYTHONPATH=str(packages))


def _refuse_gpu_build() -> None:
    """PyTorch for GPUs brings gigabytes of libraries along."""
    report = json.loads(_pip("--dry-run", "--no-deps", "--ignore-installed", "--report=-", TORCH))
    (torch,) = report["install"]
    if any(requirement.startswith("nvidia-") for requirement in torch["metadata"]["requires_dist"]):
        raise ImageUnavailableError(
            "pip chose PyTorch for GPUs; set PIP_EXTRA_INDEX_URL to the index of its CPU builds"
        )


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ImageUnavailableError(f"pip cannot install {arguments[-1]}: {done.stderr.strip()[-500:]}")
    return done.stdout


def _base_python(code: str, **env: str) -> str:
    """What the interpreter under the virtual environment prints."""
    command = [str(INTERPRETER), "-s", "-c", code]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**kept, **env})
    if done.returncode:
        raise ImageUnavailableError(f"{command[0]} cannot run what the image is for: {done.stderr.strip()[-500:]}")
    return done.stdout


def _interpreter() -> tuple[str, ...]:
    return (sys.version, str(INTERPRETER), str(INTERPRETER.stat().st_mtime_ns))


def _inside(root: Path, path: Path) -> Path:
    """Where an absolute path lies in the image; its directory exists."""
    inside = root / path.relative_to("/")
    inside.parent.mkdir(parents=True, exist_ok=True)
    return inside
