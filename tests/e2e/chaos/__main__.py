"""`python -m tests.e2e.chaos --minutes 10 --seed 7`: a fleet of three nodes, jobs, and faults at random."""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e import images
from tests.e2e.chaos.campaign import Campaign, summary
from tests.e2e.chaos.disks import small_disks
from tests.e2e.chaos.story import Story
from tests.e2e.deployment import Deployment, deployed
from tests.e2e.fleet import lacking, open_fleet

NODES = 3


def main() -> int:
    arguments = _arguments()
    if reason := lacking():
        sys.exit(reason)
    story = Story(aloud=True)
    with open_fleet(NODES) as fleet, tempfile.TemporaryDirectory(dir=fleet.directory) as directory:
        fleet.load(images.busybox())
        with small_disks(fleet, Path(directory)) as disks, deployed(fleet, Path(directory)) as muster:
            try:
                asyncio.run(Campaign(muster, arguments.seed, arguments.minutes * 60, story, disks).run())
            finally:
                if arguments.keep is not None:
                    _keep(muster, story, arguments.keep)
    sys.stdout.write(f"{summary(story, arguments.seed)}\n")
    return 1 if story.findings else 0


def _keep(muster: Deployment, story: Story, directory: Path) -> None:
    """Copy the logs and what user code noted to where they stay."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "story.txt").write_text("\n".join(story.lines))
    for log in (*muster.directory.glob("*.log"), *muster.fleet.directory.glob("node*/*.log")):
        shutil.copy(log, directory / f"{log.parent.name}-{log.name}")
    shutil.copytree(muster.directory / "stamps", directory / "stamps", dirs_exist_ok=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of faults; rest and checks take some more")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="decides which faults and jobs come when")
    parser.add_argument("--keep", type=Path, help="directory for the programs' logs and the story")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
