"""`make fuzz`: the tests of this directory again and again, each time with other examples, until the time is over."""

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz.effort import EXAMPLES

PER_ROUND = 400
HERE = Path(__file__).parent


def main() -> None:
    """Exit with 1 at the first find, which the output of pytest shows."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the first round")
    parser.add_argument("--only", default="", metavar="WORDS", help="tests whose names have them, as pytest -k")
    chosen = parser.parse_args()
    until, seed = time.monotonic() + 60 * chosen.minutes, chosen.seed
    while time.monotonic() < until:
        sys.stdout.write(f"round with --seed {seed}\n")
        sys.stdout.flush()
        pytest = [sys.executable, "-m", "pytest", "-x", "-q", str(HERE), f"--hypothesis-seed={seed}", "-k", chosen.only]
        done = subprocess.run(pytest, cwd=HERE.parents[1], env={**os.environ, EXAMPLES: str(PER_ROUND)}, check=False)
        if done.returncode:
            sys.exit(f"found something: python -m tests.fuzz --seed {seed}")
        seed += 1


main()
