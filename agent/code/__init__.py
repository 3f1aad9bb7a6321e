"""Code that jobs bring along: what a node keeps of it, and the copies that executions get."""
