"""How people sign in to the console, and the page on which they do."""
