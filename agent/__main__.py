"""`python -m agent` is `muster-agent`."""

from agent.main import main

if __name__ == "__main__":
    main()
