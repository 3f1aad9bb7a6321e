"""NVIDIA's GPUs; the program that asks NVML is a process of its own, because NVML can hang."""
