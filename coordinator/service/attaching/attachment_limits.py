"""How many attachments there may be, and the refusal of one more."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from coordinator.service.attaching.held import HeldAttachment
from coordinator.service.causes import TooFastError
from muster.daemon.rates import Rate
from muster.domain.errors import ExhaustedError
from muster.domain.quantity import counted

EXECUTION_ATTACHMENTS = 64
EXECUTION_CONNECTIONS = 256
"""Attachments of one execution that are open at once, and connections beside them."""
ACCOUNT_ATTACHMENTS = 200
CONNECTIONS_EACH = 10
"""Attachments of one account that are open at once, and for each of these so many connections beside them."""
OPENED_AT_ONCE = 200
OPENED_PER_SECOND = 20
"""Attachments that one account opens, connections included."""
HOLDERS_NAMED = 5
"""Accounts or jobs that a refusal names; the others are counted together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentLimits:
    """How many attachments there may be."""

    account: int = ACCOUNT_ATTACHMENTS
    """Attachments of one account; of connections it may have ten times as many beside."""
    execution: int = EXECUTION_ATTACHMENTS
    execution_connections: int = EXECUTION_CONNECTIONS
    opened: Rate = field(default_factory=lambda: Rate(burst=OPENED_AT_ONCE, per_second=OPENED_PER_SECOND))

    def of_execution(self, held: HeldAttachment) -> int:
        """The most attachments of one execution that are of the same sort as this one."""
        return self.execution_connections if held.is_connection else self.execution

    def of_account(self, held: HeldAttachment) -> int:
        """The most attachments of one account that are of the same sort as this one."""
        return self.account * CONNECTIONS_EACH if held.is_connection else self.account


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRefusal:
    """Why there may be no attachment more."""

    sentence: str
    """What is full, and who holds it."""
    retry_after: float = 0.0
    """Seconds after which there may be one again; 0: nobody knows."""

    def error(self) -> ExhaustedError:
        """The error that tells the caller so."""
        return TooFastError(self.sentence, self.retry_after) if self.retry_after else ExhaustedError(self.sentence)


def execution_is_full(new: HeldAttachment, there: Iterable[HeldAttachment]) -> LimitRefusal:
    """The refusal of an attachment whose execution has as many of its sort as it may have."""
    held = Counter(each.opened.account for each in there)
    name = new.opened.job_name
    return LimitRefusal(
        sentence=f"rank {new.opened.rank} of {name} has {_counted(held, new)} open, as many as there may be: "
        f"{_holders(held)}; `muster attachments {name}` lists them"
    )


def account_is_full(new: HeldAttachment, there: Iterable[HeldAttachment]) -> LimitRefusal:
    """The refusal of an attachment whose account has as many of its sort as it may have; names jobs of one project."""
    held = Counter(each.opened.job_name if each.project == new.project else "other projects" for each in there)
    return LimitRefusal(
        sentence=f"{new.opened.account} has {_counted(held, new)} open, as many as one account may have: "
        f"{_holders(held)}; `muster attachments` lists them"
    )


def opened_too_fast(new: HeldAttachment, wait: float) -> LimitRefusal:
    """The refusal of an attachment whose account opens too many in a short time."""
    return LimitRefusal(sentence=f"{new.opened.account} opens too many attachments", retry_after=wait)


def _counted(held: Counter[str], new: HeldAttachment) -> str:
    return counted(held.total(), "connection" if new.is_connection else "attachment")


def _holders(held: Counter[str]) -> str:
    first = held.most_common(HOLDERS_NAMED)
    others = held.total() - sum(count for _, count in first)
    return ", ".join([*(f"{name} {count}" for name, count in first), *([f"others {others}"] if others else [])])
