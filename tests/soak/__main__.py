"""`make soak`: strangers, viewers and large jobs against one coordinator, for hours or minutes; see docs/testing.md.

It prints a table and a verdict, and exits with 1 if a bar was missed, with 130 after Ctrl-C.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.soak.bars import judged, table
from tests.soak.soak import NODES, soak


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, help="instead of hours")
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a directory for state and logs that stays")
    chosen = parser.parse_args()
    seconds = 60 * (chosen.minutes if chosen.minutes is not None else 60 * chosen.hours)
    with tempfile.TemporaryDirectory(prefix="muster-soak-") as directory:
        try:
            seen = asyncio.run(soak(chosen.keep or Path(directory), seconds, chosen.nodes))
        except KeyboardInterrupt:
            return 130
    rows = judged(seen)
    if chosen.output == "json":
        sys.stdout.write(json.dumps({"bars": list(map(asdict, rows)), "seen": asdict(seen)}, indent=2) + "\n")
    else:
        sys.stdout.write(table(seen, rows))
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
