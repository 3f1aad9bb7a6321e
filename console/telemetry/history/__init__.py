"""What nodes used: kept on disk within a limit, the finer for the shorter a time ago it was."""
