"""One Docker engine, or Podman in its place: what it is, and what it has."""

from pathlib import Path

from agent.runtimes.docker.answers import About
from agent.runtimes.docker.engine.connection import AWAY_LIMIT, EngineConnection
from agent.runtimes.docker.engine.containers import EngineContainers
from agent.runtimes.docker.engine.files import EngineFiles
from agent.runtimes.docker.engine.images import EngineImages
from agent.runtimes.docker.engine.starts import Starts


class DockerEngine:
    """An engine with its images, its containers and the files in them."""

    def __init__(self, socket: Path) -> None:
        self.connection = EngineConnection(socket)
        self.starts = Starts()
        """What is being started; whatever can wait a little waits for it."""
        self.images = EngineImages(self.connection)
        self.containers = EngineContainers(self.connection, self.starts)
        self.files = EngineFiles(self.connection)
        self.watches = True
        """Whether ends and output are lost while it is away; containers of Podman have watchers of their own."""

    async def about(self, patience: float = AWAY_LIMIT) -> About:
        """What the engine says about itself."""
        version = await self.connection.call(self.connection.docker.version, patience)
        info = await self.connection.call(self.connection.docker.system.info, patience)
        podman = "Podman Engine" in {component.get("Name") for component in version.get("Components") or ()}
        self.watches = not podman
        return About(
            version=version["Version"],
            podman=podman,
            architecture=info["Architecture"],
            cpus=info["NCPU"],
            init=bool(info.get("InitBinary")) and (info.get("InitCommit") or {}).get("ID") != "N/A",
            live_restore=bool(info.get("LiveRestoreEnabled")),
            nvidia="nvidia" in (info.get("Runtimes") or {}),
            root=Path(info.get("DockerRootDir") or "/"),
            proxied=bool(info.get("HttpProxy") or info.get("HttpsProxy")),
            mirrored=bool((info.get("RegistryConfig") or {}).get("Mirrors")),
        )
