"""Each MPI's mpirun reaches all executions with nothing but the variables and files that rank 0 finds.

In place of `muster-rsh` a script runs what it is asked for on this machine, as the node of the address.
"""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.launching.launch import launch
from agent.core.launching.site import LaunchSite, NetworkInterface
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from tests.frameworks.environments import interpreter
from tests.unit.agent.core.gang_builders import gang, roster_of, workers

PROGRAM = Path(__file__).with_name("programs") / "mpi_sum.py"
REMOTE_SHELL = r"""#!/bin/sh
# As ssh is called: options, the host, and words for the shell there.
while :; do
  case $1 in
    -x | -n | -T | -q) shift ;;
    *) break ;;
  esac
done
host=$1
shift
echo "$host" >>"$(dirname "$0")/reached"
case $host in
  127.0.0.2) MUSTER_NODE=node-0 ;;
  127.0.0.3) MUSTER_NODE=node-1 ;;
  *) exit 255 ;;
esac
export MUSTER_NODE
exec /bin/sh -c "$*"
"""
LIMIT = 60.0


@pytest.mark.parametrize("name", ["openmpi", "mpich", "impi"])
def test_all_processes_start_on_their_nodes_and_find_each_other(tmp_path: Path, name: str) -> None:
    python = interpreter(name)
    environment = surroundings(tmp_path, python.parent)
    own = ("-genvexcl", environment["MUSTER_OWN_VARIABLES"]) if name == "impi" else ()
    words = (str(python.with_name("mpirun")), *own, "-n", "4", str(python), str(PROGRAM))
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert sorted(done.stdout.splitlines()) == [
        "rank 0 of 4 on node-0, sum 6",
        "rank 1 of 4 on node-0, sum 6",
        "rank 2 of 4 on node-1, sum 6",
        "rank 3 of 4 on node-1, sum 6",
    ]
    assert "127.0.0.3" in (tmp_path / "reached").read_text().splitlines()


def surroundings(directory: Path, programs: Path) -> Mapping[str, str]:
    """The variables of rank 0 of two executions with two processes each, once its files are written."""
    orders = [replace(order, framework=Framework(name=FrameworkName.MPI)) for order in gang(workers(2), 2)]
    roster = replace(roster_of(orders), addresses=("127.0.0.2", "127.0.0.3"))
    loopback = NetworkInterface(name="lo", subnet="127.0.0.0/8")
    site = LaunchSite(config=str(directory), outputs=str(directory), programs=str(directory), interface=loopback)
    brought = launch(orders[0], roster, site)
    for name, content in brought.config_files.items():
        (directory / name).write_bytes(content)
    remote = directory / "muster-rsh"
    remote.write_text(REMOTE_SHELL)
    remote.chmod(0o755)
    own = {"PATH": f"{directory}:{programs}:{os.defpath}", "HOME": str(directory)}
    # Open MPI 5 names its shared memory by the rank on a node, and both nodes are this machine: of 40 runs 8 crashed.
    own["OMPI_MCA_btl"] = "self,tcp"
    # Left alone it takes any two of this machine's addresses, and refuses itself where one is that of a bridge.
    own["OMPI_MCA_btl_tcp_if_include"] = "127.0.0.0/8"
    return {**own, **brought.defaults, **brought.env}
