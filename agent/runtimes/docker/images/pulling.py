"""Brings an image to the node."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from agent.core.containers.faults import pull_fault
from agent.core.containers.spec import Image
from agent.core.launching.handover import RegistryLogin
from agent.runtimes.docker.answers import About
from agent.runtimes.docker.engine.connection import EngineError
from agent.runtimes.docker.engine.images import EngineImages
from agent.runtimes.runtime import Progress
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.image import is_image, whole_name
from muster.domain.jobs.job import PullPolicy, Role

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The engine's name of an architecture → that of images. Others run on neither or are rare: not judged."""


LoginFor = Callable[[str], Awaitable[RegistryLogin | None]]
"""Finds the credentials for an image; asked only when one is pulled."""


async def present(images: EngineImages, role: Role) -> Image | None:
    """The image of a role, or None where it is to be pulled; raises ExecutionError where that may not be."""
    reference, policy = role.image or "", role.pull
    if not is_image(reference):
        raise ExecutionError(FailureKind.IMAGE, f"{reference[:80]!r} is not the name of an image")
    image = None if policy is PullPolicy.ALWAYS else await images.find(reference)
    if image is None and policy is PullPolicy.NEVER:
        message = f"image {reference} is not on the node, and pull is `never`; load it there or let it be pulled"
        raise ExecutionError(FailureKind.IMAGE, message)
    return image


async def pulled(
    images: EngineImages, reference: str, login_for: LoginFor, progress: Progress, told_as: str = ""
) -> Image:
    """An image after it was pulled; `told_as`: its name in what is told meanwhile. Raises ExecutionError."""
    await _pull(images, reference, await login_for(reference), progress, told_as or reference)
    image = await images.find(reference)
    if image is None:
        raise ExecutionError(FailureKind.IMAGE, f"image {reference} is not there after it was pulled; Docker broke off")
    return image


def refuse_foreign(about: About, role: Role, image: Image) -> None:
    """Raise ExecutionError for an image that is made for another processor than the engine's."""
    wanted = _ARCHITECTURES.get(about.architecture)
    if wanted and image.architecture in set(_ARCHITECTURES.values()) - {wanted}:
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


async def _pull(
    images: EngineImages, reference: str, login: RegistryLogin | None, progress: Progress, told_as: str
) -> None:
    progress(f"pulling {told_as}")
    said, so_far = 0, PullProgress()
    try:
        async with aclosing(images.pull(whole_name(reference), login)) as pull:
            async for news in pull:
                percent = so_far.percent(news)
                if percent > said:
                    progress(f"pulling {told_as} {percent} %")
                    said = percent
    except EngineError as error:
        raise pull_fault(reference, str(error), known=login is not None) from error
