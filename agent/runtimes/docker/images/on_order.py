"""Pulls an image before an execution needs it, where the coordinator says so."""

from agent.core.launching.handover import RegistryLogin
from agent.runtimes.docker.engine.engine import DockerEngine
from agent.runtimes.docker.images.agreement import ImageBringer
from agent.runtimes.docker.images.clearing import ImageClearing
from agent.runtimes.docker.images.pulling import PullTerms, refuse_foreign
from agent.runtimes.runtime import Progress
from muster.domain.data.kept.pull import PulledHere
from muster.domain.jobs.image import digest_in_registry
from muster.domain.jobs.job import Role


async def pulled_on_order(
    engine: DockerEngine,
    bringer: ImageBringer,
    clearing: ImageClearing,
    image: str,
    login: RegistryLogin | None,
    progress: Progress,
) -> PulledHere:
    """The image, as the registry has it now under that name; space is cleared for it first. Raises ExecutionError."""

    async def login_for(_: str) -> RegistryLogin | None:
        return login

    async with clearing.preparing(image):
        about = await engine.about()
        await clearing.clear(about.root)
        terms = PullTerms(login=login_for, about=about)
        found = await bringer.named(image, terms, progress)
        refuse_foreign(about, Role(image=image), found)
        return PulledHere(id=found.id, digest=digest_in_registry(image, found.known_as), bytes=found.bytes)
