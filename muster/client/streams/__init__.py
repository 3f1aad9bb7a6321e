"""Where a stream is, so that one that broke goes on without losing or repeating anything."""
