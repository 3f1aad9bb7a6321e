"""What jobs print, and what of it can be plotted."""
