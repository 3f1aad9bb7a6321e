"""Brings the image to the node that all ranks and attempts of a job have, whatever becomes of its tag meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from agent.core.containers.spec import Image
from agent.core.launching.handover import RegistryLogin
from agent.runtimes.docker.engine.images import EngineImages
from agent.runtimes.docker.images.clearing import DEFAULT_IMAGES_KEEP_FREE
from agent.runtimes.docker.images.pulled import PulledImages
from agent.runtimes.docker.images.pulling import ImagePulls, KnownImages, LoginFor, LoopbackPulls, PullTerms
from agent.runtimes.runtime import Progress
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.image import FoundImage, ImagePass, digest_in_registry, whole_name
from muster.domain.jobs.job import PullPolicy, Role

ASK_AGAIN = 1.0
"""Seconds between two questions which image counts; the coordinator lets the answer wait for seconds by itself."""

AgreeOnImage = Callable[[ExecutionId, FoundImage | None], Awaitable[ImagePass]]
"""Tells the coordinator what was found, if anything was, and gets what counts; raises ExecutionError."""


async def alone(execution: ExecutionId, found: FoundImage | None) -> ImagePass:
    """What this node has found, for agents without a coordinator."""
    del execution
    return ImagePass(found=found, finds=True)


def is_agreed_on(role: Role) -> bool:
    """Whether the ranks of a job agree on the image: not where its name says which it is, or each node has its own."""
    return role.pull is not PullPolicy.NEVER and "@" not in (role.image or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTerms:
    """How a node has images."""

    agree: AgreeOnImage = alone
    pulled: PulledImages | None = None
    """The note of what its agent has pulled; None: it is known until the agent ends."""
    keep_free: int = DEFAULT_IMAGES_KEEP_FREE
    """Percent of the file system with the images below which images go that the agent has pulled."""
    goes_first: Callable[[Path, int], int] | None = None
    """Removes so many bytes of layers that are kept beside the images, where the disk is short; says how many."""
    through: LoopbackPulls | None = None
    """The way to images through the node; None: its engine pulls them itself."""


class ImageBringer:
    """Brings images to one node."""

    def __init__(self, engine_images: EngineImages, terms: ImageTerms, pulled: PulledImages) -> None:
        self.images = KnownImages(engine_images, pulled)
        """Images on the node."""
        self._agree = terms.agree
        self._pulls = ImagePulls(self.images, terms.through)

    async def brought(self, assignment: Assignment, here: Image | None, terms: PullTerms, progress: Progress) -> Image:
        """The image of an execution; `here`: what the node has under its name and may use. Raises ExecutionError."""
        image = await self._brought(assignment, here, terms, progress)
        self.images.pulled.note_use(image.id)
        return image

    async def _brought(self, assignment: Assignment, here: Image | None, terms: PullTerms, progress: Progress) -> Image:
        role, terms = assignment.role, replace(terms, login=_asked_once(terms.login))
        if not is_agreed_on(role):
            return here or await self.named(role.image or "", terms, progress)
        found = await self._told(assignment, progress)
        if found is None:
            found, here = await self._found(role, here, terms, progress)
            found = (await self._agree(assignment.execution, found)).found or found
        return await self._same(role, found, here, terms, progress)

    async def _told(self, assignment: Assignment, progress: Progress) -> FoundImage | None:
        """What another node has found, or this one before; None: this one is to find it out."""
        while True:
            shown = await self._agree(assignment.execution, None)
            if shown.found is not None or shown.finds:
                return shown.found
            progress("waiting for another node of the job, which finds out which image it is")
            await asyncio.sleep(ASK_AGAIN)

    async def _found(
        self, role: Role, here: Image | None, terms: PullTerms, progress: Progress
    ) -> tuple[FoundImage, Image | None]:
        """What the name means: what the node has under it, else what the registry has; and the image, if it is here."""
        name = role.image or ""
        if here is None:
            if digest := await self.images.engine.digest(whole_name(name), await terms.login(name)):
                return FoundImage(image=name, digest=digest), await self.images.find(name)
            here = await self.named(name, terms, progress)
        return FoundImage(image=name, digest=digest_in_registry(name, here.known_as), id=here.id), here

    async def _same(
        self, role: Role, found: FoundImage, here: Image | None, terms: PullTerms, progress: Progress
    ) -> Image:
        """The image that counts, pulled by its digest where the node does not have it; raises ExecutionError."""
        if here is not None and is_same(here, found):
            return here
        for name in ([found.pinned] if found.digest else []) + ([found.id] if found.id else []):
            if (image := await self.images.find(name)) is not None:
                return image
        if not found.digest:
            return own(found, here)
        name = found.image if role.pull is PullPolicy.ALWAYS or here is None else ""
        return await self._pulled(found, terms, progress, name)

    async def named(self, name: str, terms: PullTerms, progress: Progress) -> Image:
        """An image that was pulled by its name, and is noted; raises ExecutionError."""
        return await self._pulls.pulled(name, terms, progress)

    async def _pulled(self, found: FoundImage, terms: PullTerms, progress: Progress, name: str) -> Image:
        """The image that was found, from its registry, and perhaps under a name; raises ExecutionError."""
        try:
            return await self._pulls.pulled(found.pinned, terms, progress, told_as=found.image, name=name)
        except ExecutionError as error:
            if not found.id or "manifest unknown" not in str(error):
                raise
            hint = (
                f"{error}; another node of the job has it under the name {found.image}, and the registry has something "
                "else there by now. With `pull: always` that is used"
            )
            raise ExecutionError(error.kind, hint) from error


def _asked_once(login_for: LoginFor) -> LoginFor:
    """The same, which asks once however often it is called for one image."""
    known: list[RegistryLogin | None] = []

    async def login(image: str) -> RegistryLogin | None:
        if not known:
            known.append(await login_for(image))
        return known[0]

    return login


def own(found: FoundImage, here: Image | None) -> Image:
    """What a node has itself under the name of an image that is from no registry; raises ExecutionError."""
    if here is not None and not digest_in_registry(found.image, here.known_as):
        return here
    has = "has none" if here is None else "has one from a registry"
    raise ExecutionError(
        FailureKind.IMAGE,
        f"image {found.image} is from no registry on another node of the job, which has it as {found.id}; this node "
        f"{has} under that name. Push it to a registry, or load it on all nodes (`docker load`)",
    )


def is_same(image: Image, found: FoundImage) -> bool:
    """Whether an image is the one that was found."""
    if found.id and image.id == found.id:
        return True
    return bool(found.digest) and any(name.endswith(f"@{found.digest}") for name in image.known_as)
