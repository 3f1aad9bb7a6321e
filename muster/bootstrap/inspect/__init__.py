"""What is known of a machine: asked by a script, read as facts, judged as findings."""
