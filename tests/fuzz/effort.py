"""How long is tried: always the same little in a test run, as much else as there is time for in `make fuzz`."""

import os
from datetime import timedelta

from hypothesis import HealthCheck, settings

EXAMPLES = "MUSTER_FUZZ_EXAMPLES"
"""Environment variable with which `make fuzz` asks for so many examples, other ones each time."""

_wanted = os.environ.get(EXAMPLES)

fuzzed = settings(
    max_examples=int(_wanted or 60),
    derandomize=_wanted is None,
    database=None,
    # Nothing that is read may take long, whatever it is; a busy machine gets some leave.
    deadline=timedelta(seconds=30),
    suppress_health_check=list(HealthCheck),
)
"""Settings for every test here but those that take long to make what they try."""

fuzzed_less = settings(fuzzed, max_examples=max(1, fuzzed.max_examples // 6))
