"""The bundle that is sent: a file of the user's, or one that the coordinator keeps, fetched once and checked."""

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from muster.bootstrap.inspect.checks import BundleOffer
from muster.bootstrap.installation.plan import BundleToSend
from muster.bundle.archive import sha256
from muster.bundle.manifest import BundleManifest
from muster.bundle.signature import checked_bundle
from muster.client.client import Client
from muster.domain.errors import UnknownNameError


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle that is whole."""

    file: Path
    manifest: BundleManifest
    signer: str = ""
    """Fingerprint of the key that signed it; empty: nobody did."""

    @property
    def parcel(self) -> BundleToSend:
        """What plans need to know of it."""
        return BundleToSend(name=self.file.name, size=self.file.stat().st_size, version=self.manifest.version)

    @property
    def offer(self) -> BundleOffer:
        """What checks need to know of it."""
        said = self.manifest
        return BundleOffer(
            version=said.version,
            platforms=frozenset(said.platforms),
            wheels_glibc=_version(said.wheels_glibc),
            frozen={architecture: _version(glibc) for architecture, glibc in said.frozen.items()},
        )


async def opened(file: Path, signers: Collection[str] = ()) -> Bundle:
    """The bundle in a file; raises InvalidBundleError unless it is whole, unchanged and signed by one of `signers`.

    Without `signers` it may be signed by anybody, or nobody.
    """
    found = await asyncio.to_thread(checked_bundle, file, signers)
    return Bundle(file=file, manifest=found.manifest, signer=found.signer)


async def fetched(client: Client, directory: Path, wanted: str = "", signers: Collection[str] = ()) -> Bundle:
    """A bundle that the coordinator keeps, by its name or version; the newest one if neither is said.

    It is only fetched where it is not in `directory` already.
    """
    kept = await client.bundles.list()
    if not kept:
        raise UnknownNameError(
            f"{client.address} keeps no bundle; `muster bundles create` and `muster bundles upload`, or give one with "
            "--bundle FILE"
        )
    chosen = next((each for each in kept if wanted in {"", each.name, each.version}), None)
    if chosen is None:
        raise UnknownNameError(f"{client.address} keeps no bundle {wanted!r}; `muster bundles list` has those it keeps")
    file = directory / Path(chosen.name).name
    if not await asyncio.to_thread(_have, file, chosen.sha256):
        _, file = await client.bundles.download(directory, chosen.name)
    return await opened(file, signers)


def _have(file: Path, digest: str) -> bool:
    """Whether a file is there with this hash; its directory is, in any case."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not file.is_file():
        return False
    with file.open("rb") as content:
        return sha256(content) == digest


def cache(environ: Mapping[str, str]) -> Path:
    """Where bundles are kept that were fetched."""
    return Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "muster" / "bundles"


def own_cache() -> Path:
    """The cache of this user."""
    return cache(os.environ)


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))
