"""Times commands in turns, as `time_commands.py COMMANDS FOUND TURNS`: JSON of name → words, and of milliseconds.

A few failures are passed over: MPICH's mpirun dies of SIGPIPE in one of 75 runs whose processes end at once (5.0.2,
with any remote shell).
"""

import json
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 60.0
"""Seconds for one command."""
MOST_FAILURES = 3

asked, told, turns = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
commands = json.loads(asked.read_text(encoding="utf-8"))
found: dict[str, list[float]] = {name: [] for name in commands}
failures = 0
for turn in range(turns + 1):
    for name, words in commands.items():
        began = time.perf_counter()
        ended = subprocess.run(words, check=False, timeout=LIMIT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        took = (time.perf_counter() - began) * 1000
        failures += ended.returncode != 0
        if failures > MOST_FAILURES:
            sys.exit(f"{' '.join(words)}: exit code {ended.returncode}")
        if turn and ended.returncode == 0:  # the first turn warms up
            found[name].append(took)
told.write_text(json.dumps(found), encoding="utf-8")
