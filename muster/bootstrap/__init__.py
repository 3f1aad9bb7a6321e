"""From a bare computer that SSH reaches to a node of the fleet: look, plan, install, wait, and undo what failed."""
