"""Collections, documents, chunks, and what the engine says of itself."""
