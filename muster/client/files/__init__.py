"""Files of running executions: copied there and back, and trees kept alike, over SFTP."""
