"""Documents in: over HTTP, and from the bucket through the queue."""
