"""The image of the holder: a program of a few hundred bytes that keeps a network namespace open.

It is packed here and loaded into Docker, so that no registry is needed; `holder_program/holder.c` is its source.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

_PLATFORMS = {"x86_64": "amd64", "aarch64": "arm64"}
"""The kernel's name of an architecture → that of images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderImage:
    """What to load into Docker, and under which name it is there afterwards."""

    name: str
    archive: bytes
    layer: bytes
    """An archive with nothing but the program; it can be put into any container."""


def holder_image(architecture: str, path: str) -> HolderImage:
    """The image with the program at `path`, the same bytes each time.

    `architecture` is named as the kernel names it; raises LookupError for one that there is no program for.
    """
    if architecture not in _PLATFORMS:
        raise LookupError(f"there is no holder program for {architecture}, only for {', '.join(_PLATFORMS)}")
    program = (files("agent.runtimes.docker") / "holder_program" / f"holder-{architecture}").read_bytes()
    layer = _tar({path.lstrip("/"): program}, mode=0o555)
    config = json.dumps(
        {
            "architecture": _PLATFORMS[architecture],
            "os": "linux",
            "config": {"Entrypoint": [path]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            "created": "1970-01-01T00:00:00Z",
            "history": [],
        }
    ).encode()
    digest = hashlib.sha256(config).hexdigest()
    name = f"muster/holder:{architecture}-{digest[:12]}"
    manifest = json.dumps([{"Config": f"{digest}.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    archive = _tar({f"{digest}.json": config, "layer.tar": layer, "manifest.json": manifest}, mode=0o444)
    return HolderImage(name=name, archive=archive, layer=layer)


def _tar(contents: Mapping[str, bytes], mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
