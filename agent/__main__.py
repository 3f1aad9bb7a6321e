"""`python -m agent` is `muster-agent`."""

import sys

# asyncio loads OpenSSL where it is there, and works without: gRPC brings the TLS of agents along. It is a tenth of the
# memory of an agent that has nothing to do. What does want it (the Docker runtime) takes this back.
sys.modules["ssl"] = None  # type: ignore[assignment]

from agent.main import main  # noqa: E402 - all that it imports comes after

if __name__ == "__main__":
    main()
