"""Commands that are started in a running execution, through its companion and the door to its agent."""
