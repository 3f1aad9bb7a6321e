"""Records by key, and the indexes over them."""
