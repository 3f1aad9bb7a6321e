"""What runs executions: one protocol (`runtime.py`), one module per runtime."""
