"""The SDK: a client, and a module for each service."""
