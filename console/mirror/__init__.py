"""A picture of jobs, nodes, projects and the queue, which follows the coordinator and answers from memory."""
