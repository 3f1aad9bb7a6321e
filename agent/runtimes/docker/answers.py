"""What a Docker engine tells, as values."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the engine says about itself."""

    version: str
    podman: bool
    architecture: str
    cpus: int
    init: bool
    """Whether docker-init is installed."""
    live_restore: bool
    """Whether containers go on while the engine is restarted."""
    nvidia: bool
    """Whether NVIDIA's runtime is configured."""
    root: Path
    """Where images and containers are."""
    proxied: bool = False
    """Whether it asks registries through a proxy."""
    mirrored: bool = False
    """Whether it asks a mirror for the images of Docker Hub."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """How a container is."""

    id: str
    started: bool
    """Whether it ever was."""
    running: bool
    exit_code: int
    out_of_memory: bool
    """What the engine noticed; on some kernels it does not."""
    memory_limited: bool
    address: str
    """The address on the bridge; empty elsewhere."""
    user: str
    """The user that it runs as, in the words of the request or the image."""
    pid: int
    """The first process in it, as the engine's machine numbers it; 0 when it does not run."""
    command: tuple[str, ...]
    """The first program and the words for it, whether the request or the image names them."""
    dated: bool
    """Whether the engine knows when it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerProgram:
    """A file in a container that somebody wants to run."""

    directory: bool
    executable: bool
    link: str | None
    """Where a symbolic link leads in the end."""
