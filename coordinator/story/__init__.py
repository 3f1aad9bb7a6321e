"""The story of jobs: what a turn of the engine noted, told as lines of the journal and as events for people. Pure."""
