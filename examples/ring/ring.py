"""Ring all-reduce over plain TCP: afterwards every rank has the sum of the vectors of all ranks.

Each rank sends to the next one and receives from the one before it, at the addresses and ports in the roster. There is
no other rendezvous: the roster is complete before this program starts. Standard library only.
"""

import json
import os
import socket
import struct
import sys
import time
from array import array
from pathlib import Path

LENGTH = 1000
"""Numbers in the vector of each rank."""
PATIENCE = 30.0
"""Seconds to wait for a neighbour."""


def main() -> int:
    """All-reduce, check, report: 0 when the sum is right."""
    roster = json.loads(Path(os.environ["MUSTER_CONFIG_DIR"], "distributed.json").read_text())
    rank, members = roster["config"]["rank"], roster["members"]
    if rank == 0:
        print("the roster:")
        for member in members:
            print(f"  rank {member['rank']} on {member['node']} at {member['address']}:{member['ports']['ring']}")
    vector = array("q", (number * (rank + 1) for number in range(LENGTH)))
    to_next, from_previous = neighbours(rank, members)
    with to_next, from_previous:
        all_reduce(vector, rank, len(members), to_next, from_previous)
    ranks = sum(range(1, len(members) + 1))
    right = vector == array("q", (number * ranks for number in range(LENGTH)))
    print(f"rank {rank}: the sum over {len(members)} ranks is {'right' if right else 'WRONG'} ({sum(vector)})")
    return 0 if right else 1


def neighbours(rank: int, members: list[dict]) -> tuple[socket.socket, socket.socket]:
    """Connections to the next rank and from the one before."""
    me, following = members[rank], members[(rank + 1) % len(members)]
    with socket.create_server((me["address"], me["ports"]["ring"])) as listener:
        listener.settimeout(PATIENCE)
        to_next = connect(following["address"], following["ports"]["ring"])
        to_next.sendall(struct.pack("!I", rank))
        from_previous, _ = listener.accept()
    from_previous.settimeout(PATIENCE)
    (caller,) = struct.unpack("!I", receive(from_previous, 4))
    if caller != (rank - 1) % len(members):
        raise ConnectionError(f"rank {caller} connected to rank {rank}, which is not next to it")
    return to_next, from_previous


def connect(address: str, port: int) -> socket.socket:
    """Connect to a peer; all ranks start at once, but one of them listens a moment later than another."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((address, port), timeout=PATIENCE)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def all_reduce(vector: array, rank: int, size: int, to_next: socket.socket, from_previous: socket.socket) -> None:
    """Replace `vector` by the sum over all ranks; every rank sends and receives 2 (size - 1) chunks."""
    chunks = [slice(len(vector) * part // size, len(vector) * (part + 1) // size) for part in range(size)]

    def exchange(outgoing: slice, incoming: slice) -> array:
        # A chunk fits into the socket's buffer, so sending does not wait for the next rank to receive.
        to_next.sendall(vector[outgoing].tobytes())
        return array("q", receive(from_previous, 8 * (incoming.stop - incoming.start)))

    for step in range(size - 1):  # reduce-scatter: afterwards each rank has one chunk of the sum
        chunk = chunks[(rank - step - 1) % size]
        received = exchange(chunks[(rank - step) % size], chunk)
        vector[chunk] = array("q", map(sum, zip(vector[chunk], received, strict=True)))
    for step in range(size - 1):  # all-gather: the chunks of the sum go round
        chunk = chunks[(rank - step) % size]
        vector[chunk] = exchange(chunks[(rank - step + 1) % size], chunk)


def receive(connection: socket.socket, length: int) -> bytes:
    """Exactly so many bytes."""
    received = b""
    while len(received) < length:
        piece = connection.recv(length - len(received))
        if not piece:
            raise ConnectionError(f"the previous rank hung up after {len(received)} of {length} bytes")
        received += piece
    return received


if __name__ == "__main__":
    sys.exit(main())
