"""The language of the door, the socket between an execution and its agent, as values and bytes."""
