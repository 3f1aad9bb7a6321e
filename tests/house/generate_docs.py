"""Print the documents that follow from the code: `python tests/house/generate_docs.py` (`make docs`)."""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from console.api.app import PUBLIC_ROUTES, ROUTES
from console.events.mqtt.asyncapi import asyncapi
from console.events.mqtt.topics import MQTT_TOPICS
from coordinator.service.rules import RULES, AccessScope, OperationRule
from muster import __version__
from muster.domain.jobs.lifecycle import PROGRESS, TERMINAL, TRANSITIONS, State, Trigger, phase
from muster.domain.notifications.event_types import EVENT_KINDS, EVENT_TYPES, EventSeverity, severity_of
from tests.house.grafana_dashboards import DASHBOARDS, dashboard_text

ROOT = Path(__file__).resolve().parents[2]


def documents() -> Mapping[Path, str]:
    """Every generated document: its path and what it should contain."""
    return {
        ROOT / "docs" / "lifecycle.md": "\n".join(_lifecycle()) + "\n",
        ROOT / "docs" / "routes.md": "\n".join(_routes()) + "\n",
        ROOT / "docs" / "mqtt-topics.md": "\n".join(_mqtt_topics()) + "\n",
        ROOT / "docs" / "asyncapi.json": json.dumps(asyncapi(__version__), indent=2) + "\n",
        ROOT / "docs" / "event-types.md": "\n".join(_event_types()) + "\n",
        **{ROOT / "deploy" / "grafana" / "dashboards" / f"{name}.json": dashboard_text(name) for name in DASHBOARDS},
    }


def _lifecycle() -> Iterator[str]:
    yield "# Lifecycle of an execution"
    yield ""
    yield "<!-- Printed from muster/domain/jobs/lifecycle.py by `make docs`; do not edit. -->"
    yield ""
    yield "One table in `muster/domain/jobs/lifecycle.py` lists every move; a move that is not in it raises an error."
    yield "Each transition is stored with its time. The straight way is"
    yield f"{' → '.join(f'`{state}`' for state in (*PROGRESS, State.SUCCEEDED))};"
    yield f"{', '.join(f'`{state}`' for state in State if state in TERMINAL)} have no way out."
    yield ""
    yield from _diagram()
    yield ""
    yield "## States"
    yield ""
    yield from _glossary(State, "state")
    yield ""
    yield "## Triggers"
    yield ""
    yield from _glossary(Trigger, "trigger")
    yield ""
    yield "## The phase of a job"
    yield ""
    yield "It is derived from the states of the newest attempt whenever someone asks, and never stored."
    yield ""
    yield from _phases()


def _event_types() -> Iterator[str]:
    yield "# Types of events"
    yield ""
    yield "<!-- Printed from muster/domain/event.py and muster/domain/notifications by `make docs`; do not edit. -->"
    yield ""
    yield "Every event as [CloudEvents](https://cloudevents.io) name it. [events.md](events.md) tells more of each."
    yield ""
    yield "| type | | how grave |"
    yield "|---|---|---|"
    explained = {kind: _explained(type(kind))[kind.name] for kind in EVENT_KINDS}
    for name, kind in EVENT_TYPES.items():
        yield f"| `{name}` | {explained[kind]} | {severity_of(kind)} |"
    yield ""
    yield "## How grave they are"
    yield ""
    yield from _glossary(EventSeverity, "word")


def _mqtt_topics() -> Iterator[str]:
    yield "# Topics of MQTT"
    yield ""
    yield "<!-- Printed from console/events/mqtt by `make docs`; do not edit. -->"
    yield ""
    yield "All are below the prefix. [mqtt.md](mqtt.md) says how a console is connected to a broker, and"
    yield "[asyncapi.json](asyncapi.json) has the same as an AsyncAPI 3 document."
    yield ""
    yield "| topic | | retained | message |"
    yield "|---|---|---|---|"
    for topic in MQTT_TOPICS:
        retained = "yes" if topic.retained else "no"
        yield f"| `{topic.path}` | {topic.meaning} | {retained} | `{topic.payload}` |"


def _diagram() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield from (f"    [*] --> {state}" for state in (State.QUEUED, State.WAITING))
    for (state, trigger), after in TRANSITIONS.items():
        yield f"    {state} --> {after}: {trigger}"
    for state in State:
        if state in TERMINAL:
            yield f"    {state} --> [*]"
    yield "```"


def _glossary(words: type[StrEnum], title: str) -> Iterator[str]:
    yield f"| {title} | meaning |"
    yield "|---|---|"
    explained = _explained(words)
    for word in words:
        yield f"| `{word}` | {explained[word.name]} |"


def _explained(words: type[StrEnum]) -> Mapping[str, str]:
    """What the source says of each word, by its name."""
    return dict(re.findall(r"^\s+(\w+) = .*#: (.+)$", inspect.getsource(words), re.MULTILINE))


def _phases() -> Iterator[str]:
    yield "| state | the job when all executions are in it | when one is and the others are `running` |"
    yield "|---|---|---|"
    for state in State:
        alone, among = (phase(states, decided=False) for states in ([state], [state, State.RUNNING]))
        yield f"| `{state}` | `{alone}` | `{among}` |"


def _routes() -> Iterator[str]:
    yield "# Routes"
    yield ""
    yield "<!-- Printed from console/api by `make docs`; do not edit. -->"
    yield ""
    yield "What `muster-console` answers over HTTP; [rest.md](rest.md) says how to ask, [trust.md](trust.md) of rights."
    for operation in dict.fromkeys(route.operation.partition(".")[0] for route in ROUTES):
        yield ""
        yield f"## {operation.replace('_', ' ').capitalize()}"
        yield ""
        yield "| | path | | needs |"
        yield "|---|---|---|---|"
        for route in ROUTES:
            if route.operation.partition(".")[0] == operation:
                does = (route.handler.__doc__ or "").splitlines()[0]
                yield f"| {route.verb} | `{route.path}` | {does} | {_needs(RULES[route.operation])} |"
    yield ""
    yield "## Without a token"
    yield ""
    yield "| | path | |"
    yield "|---|---|---|"
    for route in PUBLIC_ROUTES:
        yield f"| {route.verb} | `{route.path}` | {(route.handler.__doc__ or '').splitlines()[0]} |"
    yield ""
    yield "## Examples"
    yield ""
    yield "`{url}` is the address of the console; names in braces are those of the path. Each shows a token besides:"
    yield '`-H "Authorization: Bearer $TOKEN"`.'
    yield ""
    yield "```"
    yield from (f"curl {route.example}" for route in ROUTES if route.example)
    yield "```"


def _needs(rule: OperationRule) -> str:
    """What a caller must be to make a call."""
    return {
        AccessScope.KNOWN: "an account",
        AccessScope.ANYWHERE: f"{rule.access} of a project",
        AccessScope.PROJECT: f"{rule.access} of the project",
    }.get(rule.scope, f"{rule.access} of `*`")


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text)
