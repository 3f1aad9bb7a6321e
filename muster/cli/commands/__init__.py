"""One module for each noun of the command line."""
