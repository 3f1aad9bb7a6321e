"""What a node has: addresses, CPUs, memory, GPUs, runtimes."""
