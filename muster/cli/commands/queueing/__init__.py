"""Commands that say what is placed and when: holds, changes of jobs, windows."""
