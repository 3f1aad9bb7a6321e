"""Tables and text without Rich: for pipes, and for what Rich draws."""
