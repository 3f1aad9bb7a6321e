"""What libraries load or make and Muster does without: starts of commands and the memory of agents pay for it."""
