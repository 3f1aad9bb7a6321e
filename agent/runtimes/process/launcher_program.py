"""The launcher: a small process that forks the supervisors of programs, since the agent is too large to be forked.

It forks one for each connection that it gets from its agent, and ends when the agent does; supervisors go on. It loads
nothing but the standard library and a few modules of ours.
"""

import gc
import importlib
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress

from agent.runtimes.kernel.pids import process
from agent.runtimes.process.order import OTHER_USERS
from agent.runtimes.process.supervisor import IGNORED, supervise


def main() -> None:
    """Serve the agent at the other end of the socket whose descriptor is the first argument.

    With a second argument, programs will run as other users than the agent.
    """
    name("muster-launcher")
    for number in (*IGNORED, signal.SIGCHLD):  # the last one: supervisors need not be waited for
        signal.signal(number, signal.SIG_IGN)
    process(os.getpid())  # loads what each supervisor would load for itself
    if OTHER_USERS in sys.argv[2:]:
        importlib.import_module("agent.runtimes.process.other_user")
    gc.freeze()  # what is there now is shared with all supervisors and must not be touched
    with socket.socket(fileno=int(sys.argv[1])) as agent:
        while True:
            told, descriptors, _, _ = socket.recv_fds(agent, 1, 1)
            if not told:
                return
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)  # programs must not talk to the agent; recv_fds takes no flags
                fork(agent, socket.socket(fileno=descriptor))


def fork(agent: socket.socket, connection: socket.socket) -> None:
    """Make a supervisor. Where that is not possible, the closed connection tells."""
    with connection, suppress(OSError):
        if os.fork():
            return
        try:
            agent.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            name("muster-supervisor")
            supervise(connection)
        except Exception:  # noqa: BLE001 - the agent hears that the connection closes; this is for its log
            traceback.print_exc()
        finally:
            os._exit(0)


def name(text: str) -> None:
    """What process lists show."""
    file = os.open("/proc/self/comm", os.O_WRONLY)  # a path object would cost each supervisor a hundred page faults
    os.write(file, text[:15].encode("ascii"))
    os.close(file)
