"""The certificate program: `python -m agent.identity.certificate_program` makes keys and reads certificates.

What that takes is a third of the memory of an agent, which needs it for a moment twice a day. Every line on
standard input is a question, every line on standard output the answer to it, both JSON; bytes are told as latin-1. So
no key is ever an argument, in an environment or in a file of this program. Ends when standard input does.
"""

import json
import signal
import sys
from datetime import datetime

from muster.domain.errors import UnavailableError
from muster.domain.ids import NodeId
from muster.trust.certificates import (
    facts,
    fingerprint,
    fingerprints,
    handed_over,
    key_among,
    new_key,
    request_certificate,
    verify,
)
from muster.trust.handshake import shown_at
from muster.trust.identity import CertificateError, CertificateFacts

Told = str | list[str] | dict[str, str | None]


def main() -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole foreground group; the agent decides
    for line in sys.stdin.buffer:
        print(json.dumps(answer(json.loads(line))), flush=True)  # noqa: T201 - the answer


def answer(question: list[str]) -> dict[str, Told]:
    """What is told about a question: the answer, or why there is none."""
    try:
        return {"answer": _answer(*question)}
    except CertificateError as error:
        return {"refusal": str(error)}
    except UnavailableError as error:
        return {"silence": str(error)}


def _answer(kind: str, *told: str) -> Told:  # noqa: PLR0911 - one for each question
    match kind, [each.encode("latin-1") for each in told]:
        case "key", []:
            return new_key().decode()
        case "request", [key, node]:
            return request_certificate(key, NodeId(node.decode())).decode()
        case "shown", [address]:
            return shown_at(address.decode()).decode()
        case "fingerprint", [certificate]:
            return fingerprint(certificate)
        case "fingerprints", [bundle]:
            return list(fingerprints(bundle))
        case "handed over", [statement, authority, now]:
            return handed_over(statement, authority, datetime.fromisoformat(now.decode()))
        case "key among", [keys, certificate]:
            return key_among(keys, certificate).decode()
        case "facts", [certificate]:
            return _told(facts(certificate))
        case "verify", [certificate, authority, now]:
            return _told(verify(certificate, authority, datetime.fromisoformat(now.decode())))
    raise ValueError(f"nobody asks for {kind} with {len(told)} values")


def _told(facts: CertificateFacts) -> dict[str, str | None]:
    span = {"not_before": facts.not_before.isoformat(), "not_after": facts.not_after.isoformat()}
    return {"key": facts.key, "node": facts.node, **span}


if __name__ == "__main__":
    main()
