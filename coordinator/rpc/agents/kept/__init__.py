"""What nodes keep beside executions, on the streams of their agents: told upwards, ordered downwards."""
