"""Small wheels and bundles, made on the spot."""

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from muster.bundle.archive import write_bundle
from muster.bundle.manifest import BundleManifest
from muster.bundle.signature import signature_with


def make_wheel(  # noqa: PLR0913 - what wheels differ in
    directory: Path,
    name: str,
    version: str = "1.0",
    *,
    title: str = "",
    requires: Sequence[str] = (),
    extras: Sequence[str] = (),
    tag: str = "py3-none-any",
    licence: str = "",
) -> Path:
    """A wheel with one module, which says its version."""
    info = f"{name}-{version}.dist-info"
    metadata = ["Metadata-Version: 2.4", f"Name: {title or name}", f"Version: {version}"]
    metadata += [f"Requires-Dist: {each}" for each in requires]
    metadata += [f"Provides-Extra: {each}" for each in extras]
    metadata += [licence] if licence else []
    contents = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": "\n".join([*metadata, ""]),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{info}/RECORD": "",
    }
    path = directory / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in contents.items():
            archive.writestr(entry, content)
    return path


def make_own_wheels(directory: Path, version: str = "0.1.0") -> tuple[Path, ...]:
    """Small wheels of our two distributions; the first requires `tiny`, the second also `fast`."""
    client = make_wheel(
        directory,
        "muster_client",
        version,
        title="muster-client",
        requires=("tiny", "never; extra == 'bundle'"),
        extras=("bundle", "ssh"),
    )
    required = (f"muster-client=={version}", "fast")
    return client, make_wheel(directory, "muster_fleet", version, title="muster-fleet", requires=required)


def make_bundle(
    directory: Path, version: str = "1.0", contents: Mapping[str, bytes] | None = None, key: Path | None = None
) -> Path:
    """A bundle with these files, which installs nothing; signed with a key, if there is one."""
    files, source = {}, directory / f"source-{version}"
    for name, content in (contents or {"install.sh": b"#!/bin/sh\n", "wheels/a-1.0-py3-none-any.whl": b"a"}).items():
        files[name] = source / name
        files[name].parent.mkdir(parents=True, exist_ok=True)
        files[name].write_bytes(content)
    manifest = BundleManifest(
        version=version,
        platforms=("cp311-x86_64",),
        wheels_glibc="2.28",
        files={name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()},
    )
    output = directory / f"muster-{version}-cp311-x86_64.tar"
    write_bundle(output, manifest, files, None if key is None else signature_with(key, manifest.written()))
    return output
