"""What the audit log says of secrets that nodes were given: once for each execution and set of secrets."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from muster.domain.ids import ExecutionId

MOST_DELIVERIES = 20_000
"""Most deliveries that are remembered; a node that asks for an older one again is written down again."""
_NAMES = 150
"""Most characters of names in one entry; more names take more entries."""

Delivery = tuple[ExecutionId, tuple[str, ...]]


class Deliveries:
    """The deliveries that were written down last, so that a node that asks again and again does not fill the disk."""

    def __init__(self) -> None:
        self._told: OrderedDict[Delivery, None] = OrderedDict()

    def targets(self, execution: ExecutionId, project: str, secrets: Sequence[str]) -> list[str]:
        """The targets of the entries about a delivery, like `vision/db, wandb`; empty: it is written down already."""
        delivery = (execution, tuple(sorted(secrets)))
        if delivery in self._told or not secrets:
            return []
        self._told[delivery] = None
        if len(self._told) > MOST_DELIVERIES:
            self._told.popitem(last=False)
        return [f"{project}/{names}" for names in _joined(delivery[1])]


def _joined(names: Sequence[str]) -> Iterator[str]:
    line = ""
    for name in names:
        if line and len(line) + len(name) > _NAMES:
            yield line
            line = ""
        line = f"{line}, {name}" if line else name
    yield line
