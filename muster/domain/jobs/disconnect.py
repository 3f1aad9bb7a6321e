"""What becomes of executions on a node that is cut off, as whoever submits a job chooses; how: `fence`."""

from datetime import timedelta
from enum import StrEnum

DEFAULT_LOST_AFTER = timedelta(seconds=90)
SHORTEST_LOST_AFTER = timedelta(seconds=60)
"""Less would leave an agent no time to ask its peers and to stop in an orderly way."""
LONGEST_LOST_AFTER = timedelta(days=7)


class OnDisconnect(StrEnum):
    """What becomes of user code on a node that does not hear of the coordinator any more."""

    KEEP = "keep"  #: it goes on, unless the other nodes of the gang show that only this one is cut off
    STOP = "stop"  #: it is stopped in time, also if only the coordinator is away
