"""Has an engine pull images through the mover of its node, from 127.0.0.1; what came so is kept for the next pull."""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import replace
from weakref import WeakValueDictionary

from agent.core.containers.faults import pull_fault
from agent.core.containers.spec import Image
from agent.core.launching.handover import RegistryLogin
from agent.data.layers.files import layers_go_first
from agent.data.layers.messages import ImageSource, PullWanted
from agent.data.layers.mover import LayerMover, NoLoopbackError, OpenedPull
from agent.data.layers.sharing import SharedLayers
from agent.data.layers.site import LayerSite
from agent.runtimes.docker.answers import About
from agent.runtimes.docker.engine.connection import EngineError
from agent.runtimes.docker.images.agreement import ImageTerms
from agent.runtimes.docker.images.pulling import ENGINE_ARCHITECTURES, KnownImages, PullTerms, ToldPull
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.image import DOCKER_HUB, is_image_digest, registry_of, tag_of, without_tag

log = logging.getLogger(__name__)


class PullsThroughNode:
    """The way to images through one node."""

    def __init__(self, mover: LayerMover, shared: SharedLayers | None = None) -> None:
        """`shared`: layers that other nodes give; None: none do."""
        self._mover = mover
        self._shared = shared
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Names that are just pulled: several executions may want one at once."""
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
        turn = self._turns.setdefault(reference, asyncio.Lock())
        async with turn:
            here = await images.find(reference) if "@" in reference else None
            return here or await self._pulled(images, reference, wanted, terms.assignment, told, name)

    async def _pulled(
        self,
        images: KnownImages,
        reference: str,
        wanted: PullWanted,
        assignment: Assignment | None,
        told: ToldPull,
        name: str,
    ) -> Image | None:
        has_login = bool(wanted.source.username)
        try:
            async with self._mover.opened(wanted) as pull, self._sharing(pull, assignment, told):
                await told.pull(images.engine, pull.name, RegistryLogin(username=pull.user, password=pull.password))
                image = await images.engine.find(pull.name)
                if image is not None:
                    await _rename(images, image, pull, reference, name)
        except NoLoopbackError as error:
            log.info("the engine pulls an image directly", extra={"image": reference, "cause": str(error)})
            return None
        except EngineError as error:
            if pull.fault or pull.given:
                raise pull_fault(reference, pull.fault or str(error), known=has_login) from error
            self._is_cut_off = not pull.is_reached
            why = str(error) if pull.is_reached else "the engine has no way to 127.0.0.1 of its node"
            log.warning("the engine pulls an image directly", extra={"image": reference, "cause": why})
            return None
        log.info("image pulled through this node", extra={"image": reference, "given_bytes": pull.given})
        return None if image is None else await images.find(image.id)

    def _sharing(
        self, pull: OpenedPull, assignment: Assignment | None, told: ToldPull
    ) -> AbstractAsyncContextManager[None]:
        if self._shared is None or assignment is None:
            return nullcontext()
        return self._shared.sharing(pull, assignment, told.from_peers)


def through_node(terms: ImageTerms, site: LayerSite) -> ImageTerms:
    """The same, with images that come through the node, which keeps their layers in a directory."""
    mover = LayerMover(site.directory, terms.keep_free)
    shared = None if site.swarms is None else SharedLayers(site.swarms, mover)
    return replace(terms, through=PullsThroughNode(mover, shared), goes_first=layers_go_first(site.directory))


def wanted_through(reference: str, terms: PullTerms, login: RegistryLogin | None) -> PullWanted | None:
    """What the mover is asked for; None: such an engine asks such a registry itself."""
    host = registry_of(reference)
    path = without_tag(reference).partition("/")[2]
    if not _goes_through(terms.about, host) or path != path.lower():
        return None
    digest = reference.partition("@")[2]
    project = None if terms.assignment is None else terms.assignment.project
    return PullWanted(
        source=ImageSource(
            host=host,
            path=path,
            username="" if login is None else login.username,
            password="" if login is None else login.password,
        ),
        reference=digest if is_image_digest(digest) else tag_of(reference),
        architecture=ENGINE_ARCHITECTURES.get(terms.about.architecture, terms.about.architecture),
        project=project if login else "",
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
