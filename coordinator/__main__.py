"""`python -m coordinator` is `muster-coordinator`."""

from coordinator.main import main

if __name__ == "__main__":
    main()
