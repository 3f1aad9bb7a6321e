"""What a job says of the framework that its code is written for, and what follows from that."""
