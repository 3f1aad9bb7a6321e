"""Commands that work in running executions: with programs, terminals, ports and files there."""
