"""`python -m coordinator.depot` is `muster-depot`."""

from muster.daemon.refusal import requiring


def main() -> None:
    """Entry point of `muster-depot`; says what to install where a library is missing."""
    with requiring("muster-depot", "muster-fleet"):
        from coordinator.depot.program import main as serve  # noqa: PLC0415 - libraries that may be missing
    serve()


if __name__ == "__main__":
    main()
