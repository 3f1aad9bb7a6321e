"""What is answered from the mirror, with the rights of whoever asks."""
