"""What both programs stand on: journal, systemd, options file, refusals, subprograms."""
