"""The words of the product, as frozen models. Imports nothing of ours."""
