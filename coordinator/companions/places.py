"""Where the programs beside the coordinator listen, and what others are told of that."""

_WILDCARDS = frozenset({"0.0.0.0", "[::]", "::", ""})  # noqa: S104 - recognised, not bound


def listens_after(listen: str, count: int) -> str:
    """The address that is so many ports after that for clients; a free port where clients have one."""
    host, _, port = listen.rpartition(":")
    return f"{host}:{int(port) + count if int(port) else 0}"


def told_address(served: str, listen: str) -> str:
    """HOST:PORT of a program, without a host where that is the one of `listen`, or any."""
    host, _, port = served.rpartition(":")
    return f":{port}" if host in {*_WILDCARDS, listen.rpartition(":")[0]} else served
