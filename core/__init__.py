"""Weft's engine: what is the same in every function. `core/README.md` is the map."""
