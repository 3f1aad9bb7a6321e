"""The coordinator: queues gangs, places them, calls the roll and releases them."""

import os

# gRPC looks at it when it is loaded. Else it writes a line for each stranger who knocks with something else than TLS.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
