"""Topics of MQTT: one table, from which the page and the AsyncAPI document are made; pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.domain.event import FleetEvent, JobEvent, NodeEvent
from muster.domain.notifications.happening import Happening

_RESERVED = {ord(character): f"%{ord(character):02X}" for character in "+#/%\0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttTopic:
    """A kind of topic below the prefix."""

    name: str
    """What it is called in the AsyncAPI document."""
    path: str
    """The levels of the topic, with what varies in braces."""
    retained: bool
    """Whether a broker keeps the last message for who comes later."""
    payload: str
    """What a message holds, as the AsyncAPI document names it."""
    meaning: str
    qos: int = 1
    """The quality of service: 1 comes at least once, 0 at most once."""


MQTT_TOPICS = (
    MqttTopic(
        name="status",
        path="status",
        retained=True,
        payload="Status",
        meaning="whether the console is here; `gone` is its last will",
    ),
    MqttTopic(
        name="jobState",
        path="projects/{project}/jobs/{job}/state",
        retained=True,
        payload="JobState",
        meaning="a job that has not ended, and for an hour one that has; then an empty message takes it away",
    ),
    MqttTopic(
        name="jobEvents",
        path="projects/{project}/jobs/{job}/events",
        retained=False,
        payload="CloudEvent",
        meaning="what happens to a job",
    ),
    MqttTopic(
        name="nodeState",
        path="nodes/{node}/state",
        retained=True,
        payload="NodeState",
        meaning="a node; an empty message takes away one that was removed",
    ),
    MqttTopic(
        name="nodeEvents",
        path="nodes/{node}/events",
        retained=False,
        payload="CloudEvent",
        meaning="what happens to a node",
    ),
    MqttTopic(
        name="nodeTelemetry",
        path="nodes/{node}/telemetry",
        retained=False,
        payload="Sample",
        meaning="what a node used in the last ten seconds, if the file says `telemetry`",
        qos=0,
    ),
    MqttTopic(
        name="queue",
        path="queue",
        retained=True,
        payload="Queue",
        meaning="jobs and GPUs that wait, in all and by pool; every 10 s at the most, when it is other than before",
    ),
    MqttTopic(
        name="fleetEvents",
        path="fleet/events",
        retained=False,
        payload="CloudEvent",
        meaning="what happens to the fleet as a whole",
    ),
)
"""Every kind of topic."""
_PATHS: Mapping[str, str] = {topic.name: topic.path for topic in MQTT_TOPICS}


def topic_path(name: str, **places: str) -> str:
    """The topic of that name below the prefix; what a broker would take for a wildcard or a level is written `%2B`."""
    return _PATHS[name].format(**{key: place.translate(_RESERVED) for key, place in places.items()})


def events_topic(told: Happening) -> str:
    """Where an event is published."""
    match told.event:
        case JobEvent(job=job):
            return topic_path("jobEvents", project=told.job.project if told.job is not None else "", job=job)
        case NodeEvent(node=node):
            return topic_path("nodeEvents", node=node)
        case FleetEvent():
            return topic_path("fleetEvents")
