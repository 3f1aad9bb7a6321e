"""What the inputs, the code and the images of a job are: who says it first decides for all ranks and attempts."""

from dataclasses import replace

from coordinator.core.answers import Answer, Noted
from coordinator.core.data_events import CodeFetched, ImageFound
from coordinator.core.events import InputsFound
from coordinator.core.turn.turn import Turn


def note(turn: Turn, event: InputsFound) -> Answer:
    """Note what nobody has said of a URL before; what was said stays."""
    job = turn.cluster.jobs.get(event.job)
    if job is None:
        return Noted()
    known = {each.url for each in job.inputs}
    new = {each.url: each for each in reversed(event.found) if each.url not in known}
    if new:
        turn.put(replace(job, inputs=(*job.inputs, *(new[url] for url in sorted(new)))))
    return Noted()


def note_code(turn: Turn, event: CodeFetched) -> Answer:
    """Note which commit the code of a job is, for every role that names the same; what was said stays."""
    job = turn.cluster.jobs.get(event.job)
    if job is None:
        return Noted()
    roles = tuple(
        replace(role, code=replace(event.found, writable=role.code.writable))
        if role.code is not None and role.code.is_awaited and role.code.git == event.asked
        else role
        for role in job.spec.roles
    )
    if roles != job.spec.roles:
        turn.put(replace(job, spec=replace(job.spec, roles=roles), submitted=job.submitted or job.spec))
    return Noted()


def note_image(turn: Turn, event: ImageFound) -> Answer:
    """Note which image a name means, if nobody has said so before; what was said stays."""
    job = turn.cluster.jobs.get(event.job)
    if job is not None and event.found.image not in {each.image for each in job.images}:
        turn.put(replace(job, images=(*job.images, event.found)))
    return Noted()
