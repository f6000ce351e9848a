"""The final ranking beside the raw vector ranking."""
