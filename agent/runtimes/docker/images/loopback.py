"""Has an engine pull images through the mover of its node, from 127.0.0.1; what came so is kept for the next pull."""

import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agent.core.containers.faults import pull_fault
from agent.core.containers.spec import Image
from agent.core.launching.handover import RegistryLogin
from agent.data.layers.files import layers_go_first
from agent.data.layers.messages import ImageSource, PullWanted
from agent.data.layers.mover import LayerMover, NoLoopbackError, OpenedPull
from agent.runtimes.docker.answers import About
from agent.runtimes.docker.engine.connection import EngineError
from agent.runtimes.docker.images.agreement import ImageTerms
from agent.runtimes.docker.images.pulling import ENGINE_ARCHITECTURES, KnownImages, PullTerms, ToldPull
from muster.domain.jobs.image import DOCKER_HUB, is_image_digest, registry_of, tag_of, without_tag

log = logging.getLogger(__name__)


class PullsThroughNode:
    """The way to images through one node."""

    def __init__(self, mover: LayerMover) -> None:
        self._mover = mover
        self._is_cut_off = False
        """Whether the engine has no way to 127.0.0.1 of the agent."""

    async def pulled(
        self,
        images: KnownImages,
        reference: str,
        terms: PullTerms,
        login: RegistryLogin | None,
        told: ToldPull,
        name: str,
    ) -> Image | None:
        """An image that came so, is noted and has that name; None: it is to be pulled directly.

        Raises ExecutionError.
        """
        wanted = None if self._is_cut_off else wanted_through(reference, terms, login)
        if wanted is None:
            return None
        try:
            async with self._mover.opened(wanted) as pull:
                image = await self._pull(images, pull, told)
                if image is not None:
                    await _rename(images, image, pull, reference, name)
        except NoLoopbackError as error:
            log.info("the engine pulls an image directly", extra={"image": reference, "cause": str(error)})
            return None
        except EngineError as error:
            if pull.fault:
                raise pull_fault(reference, pull.fault, known=login is not None) from error
            if pull.given:
                raise pull_fault(reference, str(error), known=login is not None) from error
            self._is_cut_off = not pull.is_reached
            why = str(error) if pull.is_reached else "the engine has no way to 127.0.0.1 of its node"
            log.warning("the engine pulls an image directly", extra={"image": reference, "cause": why})
            return None
        log.info("image pulled through this node", extra={"image": reference, "given_bytes": pull.given})
        return None if image is None else await images.find(image.id)

    async def _pull(self, images: KnownImages, pull: OpenedPull, told: ToldPull) -> Image | None:
        """What the engine has pulled from the mover; raises EngineError."""
        await told.pull(images.engine, pull.name, RegistryLogin(username=pull.user, password=pull.password))
        return await images.engine.find(pull.name)


def through_node(terms: ImageTerms, layers: Path) -> ImageTerms:
    """The same, with images that come through the node, which keeps their layers in a directory."""
    through = PullsThroughNode(LayerMover(layers, terms.keep_free))
    return replace(terms, through=through, goes_first=layers_go_first(layers))


def wanted_through(reference: str, terms: PullTerms, login: RegistryLogin | None) -> PullWanted | None:
    """What the mover is asked for; None: such an engine asks such a registry itself."""
    host = registry_of(reference)
    path = without_tag(reference).partition("/")[2]
    if not _goes_through(terms.about, host) or path != path.lower():
        return None
    digest = reference.partition("@")[2]
    return PullWanted(
        source=ImageSource(
            host=host,
            path=path,
            username="" if login is None else login.username,
            password="" if login is None else login.password,
        ),
        reference=digest if is_image_digest(digest) else tag_of(reference),
        architecture=ENGINE_ARCHITECTURES.get(terms.about.architecture, terms.about.architecture),
        project="" if login is None else terms.project,
    )


def digest_name(reference: str, digest: str) -> str:
    """The name of an image that has no other: engines take it for a tag."""
    return f"{without_tag(reference)}:digest-{digest.partition(':')[2]}"


def _goes_through(about: About, host: str) -> bool:
    """Whether an engine asks registries as the mover would; Podman has containers and settings of its own."""
    if about.podman or about.proxied or "[" in host:
        return False
    return not (about.mirrored and host == DOCKER_HUB)


async def _rename(images: KnownImages, image: Image, pull: OpenedPull, reference: str, name: str) -> None:
    """Give an image the name that it is wanted by, and take it that of loopback; raises EngineError."""
    own = digest_name(reference, pull.digest) if "@" in name else name
    await images.engine.name(image.id, own)
    pinned = f"{without_tag(reference)}@{pull.digest}"
    images.pulled.note(image.id, pinned, own, size=image.bytes)
    with suppress(EngineError):  # one name more does no harm
        await images.engine.remove(pull.name)
