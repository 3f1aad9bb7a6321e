"""What the commands on running executions share: this terminal, its input, and how an attachment is followed."""
