"""`python -m coordinator` is `muster-coordinator`."""

from muster.daemon.refusal import requiring


def main() -> None:
    """Entry point of `muster-coordinator`; says what to install where a library is missing."""
    with requiring("muster-coordinator", "muster-fleet"):
        from coordinator.main import main as serve  # noqa: PLC0415 - libraries that may be missing
    serve()


if __name__ == "__main__":
    main()
