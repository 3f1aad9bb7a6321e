"""Subscriptions over HTTP: who is told of what, and how deliveries go. Keys go in, and never come out."""

from collections.abc import Mapping
from http import HTTPStatus

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import many, one
from console.api.asking import AsCaller
from console.api.reading import Fields
from console.api.route import Listed, Route
from muster.domain.notifications.event_types import EventSeverity
from muster.domain.notifications.subscription import (
    LONGEST_TARGET,
    DeliveryTry,
    Subscription,
    SubscriptionTarget,
)


class SubscriptionTerms(Fields):
    """Which events go where."""

    target: SubscriptionTarget
    to: tuple[str, ...] = Field(default=(), description="The address of a webhook, or those of mail.")
    keys: tuple[str, ...] = Field(
        default=(), description="Keys that sign for a webhook, the newest first, or the address of a chat."
    )
    events: tuple[str, ...] = Field(default=("*",), description="Types of events; `*` stands for any characters.")
    minimum: EventSeverity = EventSeverity.INFO
    jobs: str = Field(default="*", max_length=LONGEST_TARGET, description="Only jobs with names like this.")
    owners: tuple[str, ...] = Field(default=(), description="Only jobs of these accounts.")
    labels: Mapping[str, str] = Field(default_factory=dict, description="Only jobs with these labels.")


async def list_subscriptions(client: AsCaller, project: str) -> Response:
    """Subscriptions of a project by name, or of the fleet (`*`), with how their deliveries go."""
    return many(await client.notifications.list(project))


async def put_subscription(
    request: Request, client: AsCaller, project: str, subscription: str, terms: SubscriptionTerms
) -> Response:
    """Have a target told of events; a subscription of that name is replaced."""
    wish = Subscription(
        project=project,
        name=subscription,
        target=terms.target,
        to=terms.to,
        events=terms.events,
        minimum=terms.minimum,
        jobs=terms.jobs,
        owners=terms.owners,
        labels=terms.labels,
    )
    return one(request, await client.notifications.put(wish, terms.keys, replace=True))


async def remove_subscription(client: AsCaller, project: str, subscription: str) -> Response:
    """Forget a subscription; what waits for its target is not delivered."""
    await client.notifications.remove(subscription, project)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def try_subscription(request: Request, client: AsCaller, project: str, subscription: str) -> Response:
    """Send a test to a target; what it has answered, also where it has not taken the test."""
    return one(request, await client.notifications.test(subscription, project))


async def list_deliveries(client: AsCaller, project: str, subscription: str) -> Response:
    """The last tries to deliver to a target, the newest first."""
    return many(await client.notifications.deliveries(subscription, project))


_ONE = "/v1/projects/{project}/notifications/{subscription}"

NOTIFICATION_ROUTES = (
    Route(
        verb="GET",
        path="/v1/projects/{project}/notifications",
        operation="notifications.list",
        handler=list_subscriptions,
        answer=Listed(Subscription),
    ),
    Route(
        verb="PUT",
        path=_ONE,
        operation="notifications.put",
        handler=put_subscription,
        answer=Subscription,
        example=(
            '-X PUT --json \'{"target": "mail", "to": ["ada@example.com"], "minimum": "critical"}\' '
            "'{url}/v1/projects/{project}/notifications/{subscription}'"
        ),
    ),
    Route(
        verb="DELETE",
        path=_ONE,
        operation="notifications.remove",
        handler=remove_subscription,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
    ),
    Route(
        verb="POST",
        path=f"{_ONE}/test",
        operation="notifications.test",
        handler=try_subscription,
        answer=DeliveryTry,
    ),
    Route(
        verb="GET",
        path=f"{_ONE}/deliveries",
        operation="notifications.deliveries",
        handler=list_deliveries,
        answer=Listed(DeliveryTry),
    ),
)
