"""How fast the bytes of one account go through a relay; pure: the time is told."""

BURST = 1.0
"""Seconds' worth of bytes that an account which has rested moves at once."""


class RelayPace:
    """What each account has moved, against the bytes a second that it may."""

    def __init__(self, rate: int | None = None) -> None:
        """`rate`: bytes a second of one account, in both directions together; None: any."""
        self._rate = rate
        self._paid_at: dict[str, float] = {}
        """When what an account has moved so far is no more than it might, for each that is not there yet."""

    def __len__(self) -> int:
        return len(self._paid_at)

    def moved(self, account: str, size: int, now: float) -> float:
        """Note that an account has moved `size` bytes; the seconds for which it is to move nothing more."""
        if self._rate is None:
            return 0.0
        paid_at = max(self._paid_at.get(account, now), now) + size / self._rate
        self._paid_at[account] = paid_at
        return max(0.0, paid_at - now - BURST)

    def forget(self, now: float) -> None:
        """Drop the accounts that have rested."""
        self._paid_at = {account: paid_at for account, paid_at in self._paid_at.items() if paid_at > now}
