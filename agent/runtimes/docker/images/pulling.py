"""Brings an image to the node."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agent.core.containers.faults import pull_fault
from agent.core.containers.spec import Image
from agent.core.launching.handover import RegistryLogin
from agent.runtimes.docker.answers import About
from agent.runtimes.docker.engine.connection import EngineError
from agent.runtimes.docker.engine.images import EngineImages
from agent.runtimes.docker.images.pulled import PulledImages
from agent.runtimes.runtime import Progress
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.image import is_image, whole_name
from muster.domain.jobs.job import PullPolicy, Role
from muster.domain.quantity import size_text

ENGINE_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The engine's name of an architecture → that of images. Others run on neither or are rare: not judged."""


LoginFor = Callable[[str], Awaitable[RegistryLogin | None]]
"""Finds the credentials for an image; asked only when one is pulled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullTerms:
    """What a pull needs to know beside the name of the image."""

    login: LoginFor
    about: About
    assignment: Assignment | None = None
    """The execution that waits for it; None: it is pulled before one does."""


class KnownImages:
    """The images of one engine, by all names that they were pulled under; an engine forgets some of these."""

    def __init__(self, images: EngineImages, pulled: PulledImages) -> None:
        self.engine = images
        self.pulled = pulled

    async def find(self, name: str) -> Image | None:
        """What is known of an image on this node; None when it is not here."""
        found = await self.engine.find(name)
        if found is None and "@" in name and (id_ := self.pulled.id_of(name)) is not None:
            found = await self.engine.find(id_)
        if found is None:
            return None
        more = [each for each in self.pulled.digests_of(found.id) if each not in found.known_as]
        return replace(found, known_as=(*found.known_as, *more)) if more else found


async def present(images: KnownImages, role: Role) -> Image | None:
    """The image of a role, or None where it is to be pulled; raises ExecutionError where that may not be."""
    reference, policy = role.image or "", role.pull
    if not is_image(reference):
        raise ExecutionError(FailureKind.IMAGE, f"{reference[:80]!r} is not the name of an image")
    image = None if policy is PullPolicy.ALWAYS else await images.find(reference)
    if image is None and policy is PullPolicy.NEVER:
        message = f"image {reference} is not on the node, and pull is `never`; load it there or let it be pulled"
        raise ExecutionError(FailureKind.IMAGE, message)
    return image


class ImagePulls:
    """Pulls images onto one node, through the node itself where that can be."""

    def __init__(self, images: KnownImages, through: "LoopbackPulls | None" = None) -> None:
        self._images = images
        self._through = through

    async def pulled(
        self, reference: str, terms: PullTerms, progress: Progress, *, told_as: str = "", name: str = ""
    ) -> Image:
        """An image after it was pulled, which is noted; `name`: the name that it gets, if it is not its own.

        `told_as`: its name in what is told meanwhile. Raises ExecutionError.
        """
        login = await terms.login(reference)
        told = ToldPull(progress, told_as or reference)
        image = None
        if self._through is not None:
            image = await self._through.pulled(self._images, reference, terms, login, told, name or reference)
        if image is None:
            image = await self._directly(reference, login, told)
            self._images.pulled.note(image.id, reference, size=image.bytes)
            if name and name != reference:
                await self._images.engine.name(image.id, name)
                self._images.pulled.note(image.id, name)
        return image

    async def _directly(self, reference: str, login: RegistryLogin | None, told: "ToldPull") -> Image:
        try:
            await told.pull(self._images.engine, reference, login)
        except EngineError as error:
            raise pull_fault(reference, str(error), known=login is not None) from error
        image = await self._images.find(reference)
        if image is None:
            raise ExecutionError(
                FailureKind.IMAGE, f"image {reference} is not there after it was pulled; Docker broke off"
            )
        return image


class LoopbackPulls(Protocol):
    """A way to images through the node."""

    async def pulled(
        self,
        images: KnownImages,
        reference: str,
        terms: PullTerms,
        login: RegistryLogin | None,
        told: "ToldPull",
        name: str,
    ) -> Image | None:
        """An image that came so, is noted and has that name; None: it is to be pulled directly.

        Raises ExecutionError.
        """
        ...


def refuse_foreign(about: About, role: Role, image: Image) -> None:
    """Raise ExecutionError for an image that is made for another processor than the engine's."""
    wanted = ENGINE_ARCHITECTURES.get(about.architecture)
    if wanted and image.architecture in set(ENGINE_ARCHITECTURES.values()) - {wanted}:
        message = f"image {role.image} is for {image.architecture}, and the node is {wanted}; build it for both"
        raise ExecutionError(FailureKind.IMAGE, message)


class PullProgress:
    """Adds up what the engine says about the layers of one pull."""

    def __init__(self) -> None:
        self._layers: dict[str, tuple[int, int]] = {}
        self._percent = 0

    def percent(self, news: Mapping[str, Any]) -> int:
        """How much is here after this piece of news, of what is known to come; never falls."""
        layer, status = str(news.get("id", "")), news.get("status")
        detail = news.get("progressDetail") or {}
        if status == "Downloading" and detail.get("total"):
            self._layers[layer] = (int(detail["current"]), int(detail["total"]))
        elif status == "Download complete" and layer in self._layers:
            total = self._layers[layer][1]
            self._layers[layer] = (total, total)
        here, all_of_it = (sum(each) for each in zip(*self._layers.values(), strict=True)) if self._layers else (0, 0)
        self._percent = max(self._percent, 100 * here // all_of_it if all_of_it else 0)
        return self._percent


class ToldPull:
    """Has an engine pull an image, and tells how far it is."""

    def __init__(self, progress: Progress, name: str) -> None:
        """`name`: that of the image in what is told."""
        self._shared = ""
        self._progress = progress
        self._name = name
        self._said = -1

    def from_peers(self, count: int) -> None:
        """Tell how many bytes other nodes have given, with the next percent."""
        self._shared = f", {size_text(count)} from other nodes" if count else ""

    async def pull(self, images: EngineImages, reference: str, login: RegistryLogin | None) -> None:
        """Have an image pulled by some name; raises EngineError."""
        if self._said < 0:
            self._progress(f"pulling {self._name}")
            self._said = 0
        so_far = PullProgress()
        async with aclosing(images.pull(whole_name(reference), login)) as pull:
            async for news in pull:
                percent = so_far.percent(news)
                if percent > self._said:
                    self._progress(f"pulling {self._name} {percent} %{self._shared}")
                    self._said = percent
