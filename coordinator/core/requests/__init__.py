"""What clients, agents and operators ask of the core."""
