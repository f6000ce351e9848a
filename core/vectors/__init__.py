"""Vectors of many tenants, behind one protocol.

``types`` has the protocol and its words. The embedded store is three modules: ``embedded`` keeps the protocol,
``database`` has the SQLite file and the proof of its tenant filter, ``matrix`` the exact search in memory.
"""
