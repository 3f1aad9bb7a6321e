"""`python -m coordinator` is `muster-coordinator`."""

import os

# gRPC looks at it when it is loaded. One thread waits for all connections, takes what comes and hands it to the event
# loop. Several that hand each message on to one another before that one has it, as is the rule since 1.80, make a
# heartbeat dearer by a third. A gRPC that has no choice any more says so in the log, and goes on.
os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_listener")

from coordinator.main import main

if __name__ == "__main__":
    main()
