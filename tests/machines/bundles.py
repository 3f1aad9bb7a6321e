"""Bundles for the machines of a test, made and unpacked as a user does it."""

import base64
import dataclasses
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from muster.bundle.archive import read_bundle, sha256, write_bundle
from muster.bundle.own_wheel import DISTRIBUTIONS
from tests.e2e.fleet import sh
from tests.e2e.programs import environment
from tests.machines import trees
from tests.machines.trees import Flavour

MADE_WITHIN = 600.0
"""Seconds; wheels are downloaded."""


def make_bundle(directory: Path, *, frozen: bool = False) -> Path:
    """A bundle of what is installed here, for machines with Python; with `frozen` also for those without."""
    output = directory / f"muster-{'frozen' if frozen else 'wheels'}.tar"
    how = ("--frozen" if frozen else "--no-frozen", "--python", _python(), "--output", str(output))
    command = (str(Path(sys.executable).with_name("muster")), "bundles", "create", *how)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=MADE_WITHIN, env=environment(), cwd=directory
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return output


def unpack(bundle: Path, directory: Path) -> None:
    """Unpack it in a new directory, as people do it; Python takes archives apart safely from 3.11.4 on only."""
    directory.mkdir()
    sh("tar", "-C", str(directory), "--no-same-owner", "-xf", str(bundle))


def altered(bundle: Path, name: str, change: Callable[[Path], None], version: str | None = None) -> Path:
    """A bundle that is whole, of what a change makes of the files of another."""
    directory, old = bundle.parent / name, read_bundle(bundle)
    unpack(bundle, directory)
    (directory / "bundle.json").unlink()
    change(directory)
    files = {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}
    hashes = {each: _sha256(path) for each, path in files.items()}
    frozen = old.frozen if (directory / "frozen").exists() else {}
    manifest = dataclasses.replace(old, version=version or old.version, files=hashes, frozen=frozen)
    made = bundle.with_name(f"muster-{name}.tar")
    write_bundle(made, manifest, files)
    return made


def newer(
    bundle: Path,
    version: str,
    edits: Mapping[str, Callable[[str], str]] | None = None,
    more: Mapping[str, str] | None = None,
) -> Path:
    """The same bundle with our wheels at another version; that is all that differs, but for edited and added files."""
    before = read_bundle(bundle).version

    def change(directory: Path) -> None:
        for ours in DISTRIBUTIONS:
            own = directory / f"wheels/{ours.wheel_name}-{before}-py3-none-any.whl"
            added = {name: text for name, text in (more or {}).items() if name.split("/")[0] in ours.packages}
            after = _rewrite(own, (before, version), edits or {}, added)
            old, new = _sha256(own), _sha256(after)
            own.unlink()
            for listed in (directory / "requirements").iterdir():
                text = listed.read_text().replace(f"{ours.name}=={before} ", f"{ours.name}=={version} ")
                listed.write_text(text.replace(old, new))

    return altered(bundle, version, change, version)


def _rewrite(
    wheel: Path, versions: tuple[str, str], edits: Mapping[str, Callable[[str], str]], more: Mapping[str, str]
) -> Path:
    """The path of a copy beside it that says that it is another version."""
    before, after = versions
    distribution = wheel.name.split("-")[0]
    record = f"{distribution}-{after}.dist-info/RECORD"
    copy = wheel.with_name(f"{distribution}-{after}-py3-none-any.whl")
    lines = []
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(copy, "w") as to:
        for name in [*source.namelist(), *more]:
            content = more[name].encode() if name in more else source.read(name)
            if name in edits:
                content = edits[name](content.decode()).encode()
            if name == "muster/__init__.py" or name.endswith("/METADATA"):
                for said in (f"Version: {before}", f'__version__ = "{before}"', f"muster-client=={before}"):
                    content = content.replace(said.encode(), said.replace(before, after).encode())
            renamed = name.replace(f"{distribution}-{before}.dist-info", f"{distribution}-{after}.dist-info")
            if renamed != record:
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                lines.append(f"{renamed},sha256={digest},{len(content)}")
                to.writestr(renamed, content)
        to.writestr(record, "\n".join([*lines, f"{record},,", ""]))
    return copy


def _python() -> str:
    """The Python of the machines that have one, as `3.11`."""
    top = trees.layers(Flavour.BARE)[0]
    return (top / "usr/bin/python3").readlink().name.removeprefix("python")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return sha256(file)
