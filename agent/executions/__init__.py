"""The directories of executions on a node, what is noted in them, and the ports and GPUs they hold."""
