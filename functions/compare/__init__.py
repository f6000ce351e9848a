"""The function of comparisons."""
