"""Ray: a cluster of one attempt, whose head is rank 0; the job's command runs there, once all nodes have joined."""

from agent.core.launching.frameworks.surroundings import Surroundings
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster
from muster.domain.quantity import MILLIS_PER_CPU

RAY_PORT = "ray"
"""The port at which rank 0's head hears all others."""
RAY_SCRIPT = "ray.sh"

_TOKEN_LABEL = b"RAY_AUTH_TOKEN"


def ray(who: Assignment, roster: Roster, site: LaunchSite) -> Surroundings:
    """Where the head is, the token without which it takes nobody in, and the script that starts a node."""
    from hmac import digest  # noqa: PLC0415 - OpenSSL, which agents do without until a job is one of Ray

    token = digest(who.fence.key, _TOKEN_LABEL, "sha256").hex()
    facts = {
        "address": roster.addresses[who.rank],
        "cpus": str(max(1, who.role.resources.cpu_millis // MILLIS_PER_CPU)),
        "gpus": str(len(who.gpus)),
        "nodes": str(who.world_size),
        "rank": str(who.rank),
        "port": roster.endpoints(RAY_PORT)[0].rpartition(":")[2],
        "limit": str(_JOIN_WITHIN),
    }
    told = " ".join(f"{name}={value}" for name, value in facts.items())
    return Surroundings(
        env={
            "RAY_ADDRESS": roster.endpoints(RAY_PORT)[0],
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": token,
        },
        defaults={"RAY_USAGE_STATS_ENABLED": "0"},
        files={RAY_SCRIPT: f"#!/bin/sh\n{told}\n{_SCRIPT}".encode()},
        wrapper=("/bin/sh", f"{site.config}/{RAY_SCRIPT}"),
        masked=(token.encode(),),
    )


_JOIN_WITHIN = 600
"""Seconds within which all nodes must have joined."""

_SCRIPT = r"""
# The node of Ray that this execution is. On rank 0 its arguments run once all nodes have joined.

say() {
  printf 'ray: %s\n' "$1" >&2
}

if ! command -v ray >/dev/null; then
  say "there is no program ray in PATH"
  exit 127
fi
began=$(date +%s) program='' stopping=''

# Before the time is over.
in_time() {
  [ $(($(date +%s) - began)) -lt "$limit" ]
}

# How many nodes the head counts; nothing while it does not answer.
joined() {
  ray status 2>/dev/null | sed -n '/^Active:/,/^Pending:/p' | grep -c ' node_'
}

# Starts the node in the background, with what tells the head from others.
start_node() {
  ray start --block --node-ip-address "$address" --num-cpus "$cpus" --num-gpus "$gpus" "$@" >"$log" 2>&1 &
  node=$!
}

# SIGTERM is for the program, and for the node where none runs.
pass_on() {
  stopping=yes
  kill -TERM "${program:-$node}" 2>/dev/null
}

# Waits to the end, whatever signal comes between; its code is that of the process.
until_ended() {
  wait "$1"
  code=$?
  while kill -0 "$1" 2>/dev/null; do
    wait "$1"
    code=$?
  done
  return "$code"
}

end_node() {
  kill -TERM "$node" 2>/dev/null
  until_ended "$node"
  rm -rf "$own"
}

log=$MUSTER_OUTPUTS_DIR/ray.log
trap pass_on TERM INT

if [ "$rank" != 0 ]; then
  # The head may begin later than this node.
  while in_time && [ -z "$stopping" ]; do
    count=$(joined)
    [ "${count:-0}" -gt 0 ] && break
    sleep 1
  done
  [ -z "$stopping" ] || exit 0
  start_node --address "$RAY_ADDRESS"
  until_ended "$node"
  code=$?
  [ -n "$stopping" ] && code=0
  [ "$code" = 0 ] || { say "this node has ended:"; tail -n 20 "$log" >&2; }
  exit "$code"
fi

# Paths of sockets are short, so it lies nowhere deeper.
own=$(mktemp -d /tmp/ray-XXXXXX) || exit
start_node --head --port "$port" --include-dashboard false --temp-dir "$own/r"
count=0
while [ "${count:-0}" -lt "$nodes" ]; do
  if ! kill -0 "$node" 2>/dev/null; then
    say "the head has ended:"
    tail -n 20 "$log" >&2
    rm -rf "$own"
    exit 1
  fi
  if [ -n "$stopping" ] || ! in_time; then
    [ -n "$stopping" ] || say "${count:-0} of $nodes nodes have joined within $limit s"
    end_node
    exit 75
  fi
  sleep 1
  count=$(joined)
done
"$@" &
program=$!
until_ended "$program"
result=$?
program=''
end_node
exit "$result"
"""
