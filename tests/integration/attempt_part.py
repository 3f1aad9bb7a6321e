"""A node that has a part in an attempt, as its peers ask it."""

from dataclasses import dataclass, field

from agent.core.terms import AttemptKey
from muster.domain.gangs.fence import PeerWord
from muster.domain.ids import JobId, NodeId

ATTEMPT = (JobId("j"), 1)
A, B = NodeId("a"), NodeId("b")
SECRET = b"secret of the attempt"
LIMIT = 10.0


@dataclass
class Part:
    """What a node knows of the attempt."""

    word: PeerWord = PeerWord.WITHOUT
    secrets: dict[AttemptKey, bytes] = field(default_factory=lambda: {ATTEMPT: SECRET})
    given: list[AttemptKey] = field(default_factory=list)

    def secret(self, attempt: AttemptKey) -> bytes | None:
        return self.secrets.get(attempt)

    def answer(self, attempt: AttemptKey) -> PeerWord:
        self.given.append(attempt)
        return self.word
