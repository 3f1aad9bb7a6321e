"""The agent: reports what its node has, and brings executions as far as the coordinator wants them."""

import os

# gRPC looks at it when it is loaded. An agent has one connection and says little at a time: one thread that waits for
# it and takes what comes does with a third less of wake-ups than several that hand it on to each other, as is the rule
# since 1.80. A gRPC that has no choice any more says so in the log, and goes on.
os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")
