"""A node that has a part in an attempt, as its peers ask it."""

from dataclasses import dataclass, field

from muster.domain.gangs.fence import PeerWord
from muster.domain.ids import AttemptId, JobId, NodeId

ATTEMPT = AttemptId(JobId("j"), 1)
A, B = NodeId("a"), NodeId("b")
SECRET = b"secret of the attempt"
LIMIT = 10.0


@dataclass
class Part:
    """What a node knows of the attempt."""

    word: PeerWord = PeerWord.WITHOUT
    secrets: dict[AttemptId, bytes] = field(default_factory=lambda: {ATTEMPT: SECRET})
    given: list[AttemptId] = field(default_factory=list)

    def secret(self, attempt: AttemptId) -> bytes | None:
        return self.secrets.get(attempt)

    def answer(self, attempt: AttemptId) -> PeerWord:
        self.given.append(attempt)
        return self.word
