"""The depot: keeps what files of jobs hold, named by content, for whoever shows a ticket of the coordinator."""
