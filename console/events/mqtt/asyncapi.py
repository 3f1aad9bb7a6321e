"""The topics as an AsyncAPI document, for who generates readers from it; pure."""

import re
from collections.abc import Mapping
from typing import Any

from console.events.mqtt.topics import MQTT_TOPICS, MqttTopic

_PLACE = re.compile(r"\{(\w+)\}")
_TEXT = {"type": "string"}
_TIME = {"type": ["string", "null"], "format": "date-time"}
_NUMBER = {"type": "integer"}
_PARAMETERS = {
    "prefix": "What all topics begin with, muster/v1 unless the file says otherwise.",
    "project": "The name of a project.",
    "job": "The id of a job.",
    "node": "The name of a node.",
}
_MESSAGES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "Status": (
        "Whether the console is here.",
        {"state": {"enum": ["here", "ended", "gone"]}, "version": _TEXT, "since": _TIME},
    ),
    "CloudEvent": (
        "An event as CloudEvents 1.0 have it.",
        {
            "specversion": {"const": "1.0"},
            **dict.fromkeys(("id", "source", "type", "subject", "datacontenttype"), _TEXT),
            "time": _TIME,
            "data": {"type": "object"},
        },
    ),
    "JobState": (
        "A job as it is.",
        {
            **dict.fromkeys(("id", "name", "project", "owner", "phase", "summary"), _TEXT),
            "labels": {"type": "object", "additionalProperties": _TEXT},
            **dict.fromkeys(("size", "attempt"), _NUMBER),
            **dict.fromkeys(("submitted_at", "started_at", "ended_at"), _TIME),
        },
    ),
    "Sample": (
        "What a node used in a span of time.",
        {
            "at": _TIME,
            "span": {"type": "number"},
            "host": {"type": "object"},
            "gpus": {"type": "array"},
            "executions": {"type": "array"},
            "left_out": _NUMBER,
        },
    ),
    "Queue": (
        "What waits, in all and by pool.",
        {"jobs": _NUMBER, "gpus": {"type": "number"}, "pools": {"type": "object"}},
    ),
    "NodeState": (
        "A node as it is.",
        {
            **dict.fromkeys(("name", "state", "pool", "agent_version"), _TEXT),
            "cordoned": {"type": "boolean"},
            **dict.fromkeys(("gpus", "gpus_taken", "executions"), _NUMBER),
        },
    ),
}


def asyncapi(version: str) -> dict[str, Any]:
    """The document of a version of Muster."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Muster over MQTT",
            "version": version,
            "description": "What muster-console publishes. Nothing is taken from a broker.",
        },
        "defaultContentType": "application/json",
        "channels": {topic.name: _channel(topic) for topic in MQTT_TOPICS},
        "operations": {f"send{topic.name}": _operation(topic) for topic in MQTT_TOPICS},
        "components": {
            "messages": {
                name: {"title": title, "payload": {"type": "object", "properties": dict(properties)}}
                for name, (title, properties) in _MESSAGES.items()
            }
        },
    }


def _channel(topic: MqttTopic) -> dict[str, Any]:
    address = f"{{prefix}}/{topic.path}"
    return {
        "address": address,
        "description": topic.meaning,
        "parameters": {name: {"description": _PARAMETERS[name]} for name in _PLACE.findall(address)},
        "messages": {topic.payload: {"$ref": f"#/components/messages/{topic.payload}"}},
    }


def _operation(topic: MqttTopic) -> dict[str, Any]:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{topic.name}"},
        "bindings": {"mqtt": {"qos": topic.qos, "retain": topic.retained, "bindingVersion": "0.2.0"}},
    }
