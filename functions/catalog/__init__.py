"""The function of collections, documents and chunks, and of what the engine says of itself."""
