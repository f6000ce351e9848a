"""Pure functions that score and order chunks. They import nothing of Weft but `core.model`."""
