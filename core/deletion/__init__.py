"""Deletes documents, sources and collections.

Every delete keeps one order: first nothing is served any more, then the vectors go, then the chunk rows, then the rows
of the document. A delete that a crash has cut short can be called again and then finishes; the sweep finishes it, too.
"""
