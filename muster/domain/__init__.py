"""The vocabulary shared by coordinator, agents and clients: frozen values and rules without I/O."""
