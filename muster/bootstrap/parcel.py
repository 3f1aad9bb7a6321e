"""The bundle that is sent: a file of the user's, or one that the coordinator keeps, fetched once and checked."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from muster.bootstrap.checks import Offer
from muster.bootstrap.plan import Parcel
from muster.bundle.archive import verify_bundle
from muster.bundle.manifest import Manifest
from muster.client import Client
from muster.domain.errors import UnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle that is whole."""

    file: Path
    manifest: Manifest

    @property
    def parcel(self) -> Parcel:
        """What plans need to know of it."""
        return Parcel(name=self.file.name, size=self.file.stat().st_size, version=self.manifest.version)

    @property
    def offer(self) -> Offer:
        """What checks need to know of it."""
        said = self.manifest
        return Offer(
            version=said.version,
            platforms=frozenset(said.platforms),
            wheels_glibc=_version(said.wheels_glibc),
            frozen={architecture: _version(glibc) for architecture, glibc in said.frozen.items()},
        )


async def opened(file: Path) -> Bundle:
    """The bundle in a file; raises InvalidBundleError unless it is whole and unchanged."""
    return Bundle(file=file, manifest=await asyncio.to_thread(verify_bundle, file))


async def fetched(client: Client, directory: Path) -> Bundle:
    """The newest bundle that the coordinator keeps; fetched only where it is not in `directory`."""
    raise UnavailableError(f"{client.address} keeps no bundles yet ({directory}); say --bundle FILE")


def cache(environ: Mapping[str, str]) -> Path:
    """Where bundles are kept that were fetched."""
    return Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "muster" / "bundles"


def own_cache() -> Path:
    """That of this user."""
    return cache(os.environ)


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))
