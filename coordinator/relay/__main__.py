"""`python -m coordinator.relay` is `muster-relay`."""

from muster.daemon.refusal import requiring


def main() -> None:
    """Entry point of `muster-relay`; says what to install where a library is missing."""
    with requiring("muster-relay", "muster-fleet"):
        from coordinator.relay.program import main as serve  # noqa: PLC0415 - libraries that may be missing
    serve()


if __name__ == "__main__":
    main()
