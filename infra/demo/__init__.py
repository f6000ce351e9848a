"""The product at work on real documents, in a minute, on one machine."""
