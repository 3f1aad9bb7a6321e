"""The event that is sent as a test; pure."""

import json
from datetime import UTC, datetime

from muster.documents import document
from muster.domain.notifications.cloud_event import CloudEvent


def body_of_test(subscription: str, event: str, now: float) -> bytes:
    """A CloudEvent as JSON that says it is only a test, with this id, at a time in seconds of the wall clock."""
    told = CloudEvent(
        id=event,
        source="muster://test",
        type="muster.notification.test",
        subject=f"notifications/{subscription}",
        time=datetime.fromtimestamp(now, UTC),
        data={"severity": "info", "text": f"this is a test of the subscription {subscription}", "by": ""},
    )
    return json.dumps(document(told)).encode()
