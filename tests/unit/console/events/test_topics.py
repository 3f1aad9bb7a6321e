"""Topics of MQTT: where events are published, and what the AsyncAPI document says of them."""

from dataclasses import replace

import pytest

from console.events.mqtt.asyncapi import asyncapi
from console.events.mqtt.figures import waiting_by_pool
from console.events.mqtt.topics import MQTT_TOPICS, events_topic, topic_path
from muster.domain.notifications.happening import Happening
from tests.unit.console.events.told import of_fleet, of_job, of_node
from tests.unit.console.mirrored import a_line


@pytest.mark.parametrize(
    ("told", "topic"),
    [
        (of_job(), "projects/vision/jobs/k3/events"),
        (of_node(), "nodes/gpu-7/events"),
        (of_fleet("red"), "fleet/events"),
    ],
)
def test_an_event_is_published_below_its_project_or_node(told: Happening, topic: str) -> None:
    assert events_topic(told) == topic


def test_what_waits_is_counted_by_pool() -> None:
    lines = [a_line("a"), a_line("b", position=2), replace(a_line("c", position=3), pool="slow")]
    assert waiting_by_pool(lines) == {
        "jobs": 3,
        "gpus": 3,
        "pools": {"fast": {"jobs": 2, "gpus": 2}, "slow": {"jobs": 1, "gpus": 1}},
    }


def test_no_name_reaches_into_the_topics_of_others() -> None:
    assert topic_path("jobState", project="a/../b", job="+#") == "projects/a%2F..%2Fb/jobs/%2B%23/state"
    assert topic_path("nodeState", node="a%2Fb") == "nodes/a%252Fb/state"


def test_the_document_has_every_topic_with_its_message() -> None:
    document = asyncapi("0.1.0")
    assert document["asyncapi"] == "3.0.0"
    assert set(document["channels"]) == {topic.name for topic in MQTT_TOPICS}
    for topic in MQTT_TOPICS:
        channel, operation = document["channels"][topic.name], document["operations"][f"send{topic.name}"]
        assert channel["address"] == f"{{prefix}}/{topic.path}"
        assert set(channel["parameters"]) == {
            "prefix",
            *(word for word in ("project", "job", "node") if f"{{{word}}}" in topic.path),
        }
        assert operation["bindings"]["mqtt"]["retain"] is topic.retained
        assert operation["bindings"]["mqtt"]["qos"] == topic.qos
        [message] = channel["messages"].values()
        name = message["$ref"].rpartition("/")[2]
        assert document["components"]["messages"][name]["payload"]["type"] == "object"
