"""`python -m console` is `muster-console`."""

from muster.daemon.refusal import requiring


def main() -> None:
    """Entry point of `muster-console`; says what to install where a library is missing."""
    with requiring("muster-console", "muster-fleet"):
        from console.program import main as serve  # noqa: PLC0415 - libraries that may be missing
    serve()


if __name__ == "__main__":
    main()
