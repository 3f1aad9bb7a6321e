"""The synchronous form of `muster.client.services.notifications`, made from it by `make sync`; change that one."""

from collections.abc import Iterable, Sequence

from muster.client.blocking.loop_thread import LoopThread
from muster.client.blocking.stream import SyncStream
from muster.client.services.notifications import NotificationsClient
from muster.domain.notifications.subscription import DeliveryTry, FollowedSubscriptions, ReportedDelivery, Subscription


class SyncNotificationsClient:
    """Subscriptions, reached as `client.notifications`; those of the project `*` are about the whole fleet."""

    def __init__(self, own: NotificationsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def put(self, subscription: Subscription, keys: Sequence[str] = (), *, replace: bool = False) -> Subscription:
        """Have a target told of events; ConflictError if a subscription is there that must not be replaced.

        `keys` are those that sign for a webhook, the newest first, or the address of a chat. Nobody reads them back.

        >>> wish = Subscription(project="vision", name="ada", target=SubscriptionTarget.MAIL, to=("ada@example.com",))
        >>> client.notifications.put(wish)
        """
        return self._loop.run(self._own.put(subscription, keys, replace=replace))

    def list(self, project: str = "") -> tuple[Subscription, ...]:
        """The subscriptions of a project by name, each with its last try and how many have failed in a row.

        >>> failing = [each.name for each in client.notifications.list("vision") if each.failures]
        """
        return self._loop.run(self._own.list(project))

    def remove(self, name: str, project: str = "") -> None:
        """Forget a subscription; what waits for it is not delivered any more.

        >>> client.notifications.remove("ada", "vision")
        """
        self._loop.run(self._own.remove(name, project))

    def test(self, name: str, project: str = "") -> DeliveryTry:
        """Have a console send a test, and wait for what the target says to it: allow 20 s.

        Raises ConflictError where no console delivers for the fleet.

        >>> answer = client.notifications.test("ada", "vision")
        """
        return self._loop.run(self._own.test(name, project))

    def deliveries(self, name: str, project: str = "") -> tuple[DeliveryTry, ...]:
        """The last tries to deliver to a target, the newest first.

        >>> refused = [each.told for each in client.notifications.deliveries("ada") if not each.taken]
        """
        return self._loop.run(self._own.deliveries(name, project))

    def follow(self) -> "SyncStream[FollowedSubscriptions]":
        """All subscriptions with their keys, again after each change, until the stream breaks; for consoles alone.

        >>> for followed in client.notifications.follow():
        ...     print(len(followed.subscriptions))
        """
        return self._loop.stream(self._own.follow())

    def report(self, deliveries: Iterable[ReportedDelivery]) -> None:
        """Tell how deliveries went, as a console; what is told again counts once.

        >>> client.notifications.report([ReportedDelivery(project="vision", name="ada", outcome=tried)])
        """
        self._loop.run(self._own.report(deliveries))
