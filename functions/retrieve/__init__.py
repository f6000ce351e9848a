"""Ranked chunks and cited contexts out."""
