"""Ask every peer for its rank over its one published port, and answer those who ask.

On bridge networking a port has two numbers. `self.network.exposed_ports` maps the node's to the container's: a rank
listens on the container's, and its peers connect to the node's. Standard library only.
"""

import json
import os
import socketserver
import sys
import threading
import time
from pathlib import Path
from socket import create_connection

PATIENCE = 30.0
"""Seconds to wait for a peer."""


def main() -> int:
    """Serve, ask every peer, serve until every peer has asked: 0 when each answer was the right one."""
    roster = json.loads(Path(os.environ["MUSTER_CONFIG_DIR"], "distributed.json").read_text())
    rank, members, me = roster["config"]["rank"], roster["members"], roster["self"]
    peers = [member for member in members if member["rank"] != rank]
    published = me["ports"]["echo"]
    inside = int(me["network"]["exposed_ports"].get(str(published), published))
    print(f"rank {rank} listens on port {inside}, published as {me['address']}:{published}", flush=True)
    with EchoServer(inside, rank) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        answers = {peer["rank"]: ask(peer["address"], peer["ports"]["echo"], rank) for peer in peers}
        everyone_asked = server.wait_for({peer["rank"] for peer in peers})
        server.shutdown()
    right = everyone_asked and all(answer == f"rank {peer}" for peer, answer in answers.items())
    print(f"rank {rank} heard {sorted(answers.values())} and was asked by all: {'right' if right else 'WRONG'}")
    return 0 if right else 1


class EchoServer(socketserver.ThreadingTCPServer):
    """Tells its rank to whoever says theirs, and remembers who did."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, rank: int) -> None:
        self.rank = rank
        self.asked: set[int] = set()
        self.changed = threading.Condition()
        super().__init__(("", port), Answer)

    def wait_for(self, ranks: set[int]) -> bool:
        """Whether all of them have asked in time."""
        with self.changed:
            return self.changed.wait_for(lambda: ranks <= self.asked, PATIENCE)


class Answer(socketserver.StreamRequestHandler):
    """One question: a line with the rank of the one who asks."""

    server: EchoServer

    def handle(self) -> None:
        """Answer with our rank."""
        asker = int(self.rfile.readline())
        self.wfile.write(f"rank {self.server.rank}\n".encode())
        self.wfile.flush()
        with self.server.changed:
            self.server.asked.add(asker)
            self.server.changed.notify()


def ask(address: str, port: int, rank: int) -> str:
    """The answer of a peer.

    A published port accepts connections before anyone listens behind it, so only an answer counts.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with create_connection((address, port), timeout=5) as connection, connection.makefile("rw") as line:
                line.write(f"{rank}\n")
                line.flush()
                if answer := line.readline().strip():
                    return answer
        except (ConnectionError, TimeoutError):
            pass
        if time.monotonic() > deadline:
            return f"nothing from {address}:{port}"
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
