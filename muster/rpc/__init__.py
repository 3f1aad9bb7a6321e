"""What travels between the programs: generated stubs, and the channel options that both ends share."""
