"""What is wrong with the data of a role: what it finds, and what it leaves."""
