"""The function that retrieves ranked chunks and assembles cited contexts."""
