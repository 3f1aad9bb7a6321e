"""The SDK without `async`: the same clients, driven by one event loop in a thread of its own."""
