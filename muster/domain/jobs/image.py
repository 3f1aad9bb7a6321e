"""Names of container images: which registry serves them, which credentials are for it, and what they mean."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

DOCKER_HUB = "docker.io"
"""What serves images whose name begins with no registry."""

_HUB_NAMES = frozenset({DOCKER_HUB, "index.docker.io", "registry-1.docker.io", "hub.docker.com", "registry.docker.io"})
_API_PATHS = ("/v1", "/v2")
_IMAGE = re.compile(r"[A-Za-z0-9\[][A-Za-z0-9._:@+\]-]*(/[A-Za-z0-9._:@+-]+)*")
_SERVER = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9._/-]+)?|\[[0-9a-f:]+\](:[0-9]{1,5})?")


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundImage:
    """What the name of an image was found to mean, which counts for all ranks and attempts of a job."""

    image: str
    """The image as the job names it."""
    digest: str = ""
    """The digest of its manifest in its registry, `sha256:` and so on; empty: it is on nodes alone."""
    id: str = ""
    """What the engine of the node that found it calls it; empty: it was not on that node."""

    @property
    def pinned(self) -> str:
        """The name by which the registry gives this image and no other."""
        return f"{without_tag(self.image)}@{self.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePass:
    """What a node is told of the image of an execution."""

    found: FoundImage | None = None
    """What counts for the job; None: nobody has said yet."""
    finds: bool = False
    """Whether this node is the one that finds it out."""


def shared_as(image: str) -> str:
    """What the layers of an image are called that the nodes of an attempt fetch together."""
    return f"image {image}"


def registry_of(image: str) -> str:
    """The registry that serves an image: `docker.io` where its name says nothing else."""
    return _full(image).partition("/")[0]


def whole_name(image: str) -> str:
    """The name with its registry in front: `busybox:1` as `docker.io/library/busybox:1`."""
    first, slash, _ = image.partition("/")
    if slash and _is_registry(first):
        return image
    return f"{DOCKER_HUB}/{image}" if slash else f"{DOCKER_HUB}/library/{image}"


def without_tag(image: str) -> str:
    """The whole name of an image without tag and digest: `busybox:1` as `docker.io/library/busybox`."""
    repository = image.partition("@")[0]
    path, slash, name = repository.rpartition("/")
    return whole_name(f"{path}{slash}{name.partition(':')[0]}")


def tag_of(image: str) -> str:
    """The tag in the name of an image, or the one that is meant where it names none."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2] or "latest"


def is_image_digest(text: str) -> bool:
    """Whether a text is a digest as registries and engines write them."""
    return _DIGEST.fullmatch(text) is not None


def digest_in_registry(image: str, known_as: Iterable[str]) -> str:
    """The digest of an image in its own registry, of the names with digests by which an engine knows it.

    Empty: the engine has it from nowhere, or from elsewhere.
    """
    repository = without_tag(image)
    for name in known_as:
        _, _, digest = name.partition("@")
        if without_tag(name) == repository and is_image_digest(digest):
            return digest
    return ""


def is_image(name: str) -> bool:
    """Whether an engine can be asked for it: it is made of nothing that leads elsewhere in a path."""
    return _IMAGE.fullmatch(name) is not None and not {".", ".."} & set(name.split("/"))


def is_server(server: str) -> bool:
    """Whether credentials can be for it: a host name with perhaps a port, a scheme in front, or a path behind."""
    return _SERVER.fullmatch(_plain(server)) is not None


def serves(server: str, image: str) -> bool:
    """Whether credentials for `server` are meant for an image; a server with a path is for what is below it."""
    return f"{_full(image)}/".startswith(f"{_plain(server)}/")


def _full(image: str) -> str:
    """The whole name without tag and digest: `busybox:1` as `docker.io/library/busybox`."""
    first, slash, rest = image.partition("@")[0].partition("/")
    if not slash or not _is_registry(first):
        first, rest = DOCKER_HUB, f"{first}{slash}{rest}" if slash else f"library/{first}"
    path, _, name = rest.rpartition("/")
    return "/".join(filter(None, (_plain(first), path, name.partition(":")[0])))


def _is_registry(first: str) -> bool:
    """Whether the first part of a name with several names its registry."""
    return re.search(r"[.:]", first) is not None or first == "localhost"


def _plain(server: str) -> str:
    """One spelling of a server: no scheme, no path of an interface, no port that goes without saying."""
    bare = re.sub(r"^https?://", "", server.strip().lower()).rstrip("/")
    for path in _API_PATHS:
        bare = bare.removesuffix(path)
    host, slash, path = bare.partition("/")
    host = host.removesuffix(":443")
    return (DOCKER_HUB if host in _HUB_NAMES else host) + slash + path
