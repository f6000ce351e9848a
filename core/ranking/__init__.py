"""Pure functions that score and order. They import nothing of ours but `core.model`."""
