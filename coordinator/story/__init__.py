"""Stories of jobs, nodes and the fleet: notes of a turn, told in the journal and as events for people. Pure."""
