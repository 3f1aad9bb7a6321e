"""What manifests of images say, as far as pulling needs it: which images an index has, and which blobs an image."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.domain.data.digest import is_digest
from muster.domain.data.tree import ContentObject
from muster.domain.errors import MusterError

LONGEST_IMAGE_MANIFEST = 4 * 1024 * 1024
"""Bytes of a manifest, which is what registries take at most."""
MOST_BLOBS = 1024
"""Blobs or images that one manifest names."""

_LARGEST_BLOB = 1 << 50
_DOCKER, _OCI = "application/vnd.docker.distribution", "application/vnd.oci.image"
INDEX_TYPES = (f"{_OCI}.index.v1+json", f"{_DOCKER}.manifest.list.v2+json")
IMAGE_TYPES = (f"{_OCI}.manifest.v1+json", f"{_DOCKER}.manifest.v2+json")
MANIFEST_ACCEPT = ", ".join((*INDEX_TYPES, *IMAGE_TYPES))
"""The header with which a registry is asked for a manifest."""


class ManifestError(MusterError):
    """A manifest is not one with which this node can pull an image; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageManifest:
    """One manifest: that of an image, or an index of images."""

    media_type: str
    images: tuple[tuple[str, str], ...] = ()
    """The architecture and the digest of each image for Linux that an index names."""
    blobs: tuple[ContentObject, ...] = ()
    """The configuration and the layers of an image."""

    @property
    def is_index(self) -> bool:
        """Whether it names images, and no blobs."""
        return self.media_type in INDEX_TYPES

    def image_for(self, architecture: str) -> str:
        """The digest of the image for a processor; raises ManifestError."""
        for each, digest in self.images:
            if each == architecture:
                return digest
        raise ManifestError(f"the image is not there for {architecture}")


def read_manifest(content: bytes) -> ImageManifest:
    """What a manifest says; raises ManifestError."""
    if len(content) > LONGEST_IMAGE_MANIFEST:
        raise ManifestError(f"the manifest has more than {LONGEST_IMAGE_MANIFEST} bytes")
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        raise ManifestError("the manifest is no JSON") from None
    if not isinstance(said, Mapping) or said.get("schemaVersion") != 2:  # noqa: PLR2004 - the only one in use
        raise ManifestError("the manifest is of a form that is not known")
    kind = said.get("mediaType")
    if "manifests" in said and kind in {None, *INDEX_TYPES}:
        return ImageManifest(media_type=kind or INDEX_TYPES[0], images=_images(said["manifests"]))
    if "layers" in said and kind in {None, *IMAGE_TYPES}:
        blobs = [_blob(each) for each in (said.get("config"), *_listed(said["layers"]))]
        unique = {each.digest: each for each in blobs}
        return ImageManifest(media_type=kind or IMAGE_TYPES[0], blobs=tuple(unique.values()))
    raise ManifestError("the manifest is of a form that is not known")


def _images(said: object) -> tuple[tuple[str, str], ...]:
    found = []
    for each in _listed(said):
        platform = each.get("platform") if isinstance(each, Mapping) else None
        if isinstance(platform, Mapping) and platform.get("os") == "linux":
            found.append((str(platform.get("architecture")), f"sha256:{_digest(each)}"))
    return tuple(found)


def _blob(said: object) -> ContentObject:
    if not isinstance(said, Mapping):
        raise ManifestError("the manifest describes a blob as what is none")
    if re.search("foreign|nondistributable", str(said.get("mediaType"))):
        raise ManifestError("the manifest names a layer that lies elsewhere")
    size = said.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _LARGEST_BLOB:
        raise ManifestError("the manifest names a blob without its size")
    return ContentObject(digest=_digest(said), size=size)


def _digest(said: Mapping[str, Any]) -> str:
    kind, _, digest = str(said.get("digest")).partition(":")
    if kind != "sha256" or not is_digest(digest):
        raise ManifestError("the manifest names something by another hash than SHA-256")
    return digest


def _listed(said: object) -> Sequence[Any]:
    if not isinstance(said, list) or len(said) > MOST_BLOBS:
        raise ManifestError(f"the manifest does not list its parts, or more than {MOST_BLOBS}")
    return said
