"""What the inputs of a job hold: whoever says it first decides for all ranks and attempts."""

from dataclasses import replace

from coordinator.core.answers import Answer, Noted
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
