"""The scheduled sweep."""
