"""`python -m agent` is `muster-agent`."""

import os

from muster.lean import heap
from muster.lean.absent import AGENTS_DO_WITHOUT, leave_out
from muster.lean.typing_names import leave_typing_extensions_out
from muster.lean.values import share_methods_of_values

leave_typing_extensions_out()
share_methods_of_values()
heap.keep_together()
leave_out(*AGENTS_DO_WITHOUT)  # what does want them (the Docker runtime) takes this back

# gRPC looks at it when it is loaded. An agent has one connection and says little at a time: one thread that waits for
# it and takes what comes does with a third less of wake-ups than several that hand it on to each other, as is the rule
# since 1.80. A gRPC that has no choice any more says so in the log, and goes on.
os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")

from muster.daemon.refusal import requiring  # noqa: E402 - all that is imported comes after


def main() -> None:
    """Entry point of `muster-agent`; says what to install where a library is missing."""
    with requiring("muster-agent", "muster-fleet"):
        from agent.main import main as serve  # noqa: PLC0415 - after what is settled above
    serve()


if __name__ == "__main__":
    main()
