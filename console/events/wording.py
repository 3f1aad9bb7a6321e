"""What chats and mails say of an event: a sentence, and where to look; pure."""

import json
from collections.abc import Mapping
from typing import Any

from muster.domain.visible_text import visible

_MOST_TEXT = 2_000
"""Characters of an event's text that a message has."""
_SLACK_MEANS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def subject_line(event: Mapping[str, Any]) -> str:
    """What has happened, in one short line; `event` is a CloudEvent as data."""
    data = event["data"]
    job = data.get("job")
    what = str(event["type"]).rpartition(".")[2].replace("_", " ")
    if job is not None:
        return visible(f"job {job['name']} of {job['project']}: {what}")
    place = f"node {data['node']}" if "node" in data else "fleet"
    return visible(f"{place}: {what}")


def slack_body(event: Mapping[str, Any]) -> bytes:
    """A message in the form of Slack's incoming webhooks; no text of others can ping people or form links."""
    head, text = subject_line(event), _text(event)
    told = f"*{head.translate(_SLACK_MEANS)}*\n{text.translate(_SLACK_MEANS)}\n`{event['subject']}`"
    return json.dumps({"text": told}).encode()


def mail_text(event: Mapping[str, Any]) -> str:
    """The body of a mail."""
    data = event["data"]
    lines = [_text(event), ""]
    if (job := data.get("job")) is not None:
        lines += [
            f"job:      {job['id']} ({job['name']})",
            f"project:  {job['project']}",
            f"attempt:  {data['attempt']}",
        ]
        lines += [f"owner:    {job['owner']}", *([f"nodes:    {', '.join(data['nodes'])}"] if data["nodes"] else [])]
    if data.get("by"):
        lines.append(f"by:       {data['by']}")
    lines += [f"time:     {event['time']}", f"event:    {event['id']}", ""]
    return "\n".join(map(visible, lines))


def _text(event: Mapping[str, Any]) -> str:
    return visible(str(event["data"]["text"]))[:_MOST_TEXT]
