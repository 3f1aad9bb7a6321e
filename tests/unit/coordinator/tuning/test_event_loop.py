"""What wakes the coordinator up for gRPC is taken together."""

import socket

from coordinator.tuning.event_loop import together


def test_who_reads_one_byte_a_time_is_called_once_for_all_that_wait() -> None:
    written, waking = socket.socketpair()
    read = list[bytes]()
    with written, waking:
        waking.setblocking(False)
        take = together(waking, lambda: read.append(waking.recv(1)))
        written.sendall(b"abc")
        take()
        written.sendall(b"d")
        take()
        written.close()
        take()
    assert read == [b"c", b"d", b""]
