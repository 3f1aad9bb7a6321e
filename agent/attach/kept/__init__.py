"""Kept shells of executions: they go on when nobody is attached, and when the agent is another one."""
