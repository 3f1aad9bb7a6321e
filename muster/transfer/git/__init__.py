"""Git repositories, through the program `git` of this machine: one commit, fetched and read as a content tree."""
