"""How fast each may call: strangers by their address, those who are known by their name.

A token that counts always opens the door, however many wrong ones came from the same address: the nodes of a site may
all be behind one, and nobody guesses 256 random bits. What is held up is the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass

from coordinator.clock import boot_time
from coordinator.service.causes import TooFastError
from coordinator.trust.caller import Caller, CallerKind
from coordinator.trust.places import place_of
from muster.daemon.rates import Buckets, Rate

STRANGERS_AT_ONCE = 3_000
STRANGERS_PER_SECOND = 50
"""Calls that anybody may make, from one address: 3,000 nodes behind it join at once; the join itself does not count."""
LOGINS_AT_ONCE = 300
LOGINS_PER_SECOND = 20
"""Calls a second by which somebody logs in: each may ask the identity provider something."""
WRONG_AT_ONCE = 100
WRONG_PER_SECOND = 1
"""Tokens and certificates that do not count, from one address; what follows hears that it is too much."""
ACCOUNT_AT_ONCE = 20_000
ACCOUNT_PER_SECOND = 2_000
"""Calls of one account, over however many connections."""
NODE_AT_ONCE = 1_000
NODE_PER_SECOND = 50
"""Calls of one node, where a stream counts once."""

_STRANGERS = Rate(burst=STRANGERS_AT_ONCE, per_second=STRANGERS_PER_SECOND)
_LOGINS = Rate(burst=LOGINS_AT_ONCE, per_second=LOGINS_PER_SECOND)
_WRONG = Rate(burst=WRONG_AT_ONCE, per_second=WRONG_PER_SECOND)
_ACCOUNT = Rate(burst=ACCOUNT_AT_ONCE, per_second=ACCOUNT_PER_SECOND)
_NODE = Rate(burst=NODE_AT_ONCE, per_second=NODE_PER_SECOND)

_LOGIN = "/muster.rpc.v1.LoginService/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Each kind of rate."""

    strangers: Rate = _STRANGERS
    logins: Rate = _LOGINS
    wrong: Rate = _WRONG
    accounts: Rate = _ACCOUNT
    nodes: Rate = _NODE


class Pace:
    """Raises TooFastError for whoever goes too fast; one for all doors of a coordinator."""

    def __init__(self, rates: Rates | None = None, clock: Callable[[], float] = boot_time) -> None:
        rates = rates or Rates()
        self._clock = clock
        self._strangers = Buckets[str](rates.strangers)
        self._logins = Buckets[str](rates.logins)
        self._wrong = Buckets[str](rates.wrong)
        self._accounts = Buckets[str](rates.accounts)
        self._nodes = Buckets[str](rates.nodes)

    def stranger(self, peer: str, method: str) -> None:
        """Somebody calls what anybody may call."""
        place, now = place_of(peer), self._clock()
        wait = self._strangers.take(place, now)
        if not wait and method.startswith(_LOGIN):
            wait = self._logins.take(place, now)
        if wait:
            raise TooFastError("too many calls come from this address", wait)

    def joined(self, peer: str) -> None:
        """Note that a stranger's call was a join on a token that counts: it is not held against the address."""
        self._strangers.give_back(place_of(peer))

    def known(self, who: Caller) -> None:
        """Note a call of somebody who is known; the user of `muster up` has the machine alone."""
        if who.kind is CallerKind.LOCAL:
            return
        buckets = self._nodes if who.kind is CallerKind.NODE else self._accounts
        if wait := buckets.take(who.name, self._clock()):
            raise TooFastError(f"{who.name} makes too many calls", wait)

    def wrong(self, peer: str) -> None:
        """Somebody has shown what does not count."""
        if wait := self._wrong.take(place_of(peer), self._clock()):
            raise TooFastError("too much that does not count was shown from this address", wait)
