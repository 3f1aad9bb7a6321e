"""What callers may say of when jobs are placed: holds, changes, windows."""
