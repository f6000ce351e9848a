"""The function of the scheduled sweep."""
