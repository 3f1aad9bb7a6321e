"""What a client can ask and order: one module for each noun."""
