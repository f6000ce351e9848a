"""The functions that ingest documents: `http` for calls of the API, `events` for the bucket's changes in the queue."""
