"""How people sign in to the console."""
