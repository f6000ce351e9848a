"""Vectors of many tenants, behind one protocol.

``types`` has the protocol and its words, ``attributes`` what filters mean to every store. The embedded store:
``embedded`` keeps the protocol, ``database`` has the SQLite file and the proof of its tenant filter, ``matrix``,
``postings`` and ``words`` the exact searches in memory. ``opensearch`` is the other store.
"""
