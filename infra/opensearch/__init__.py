"""A real OpenSearch on this machine: one node on the loopback interface, without security, for tests and for trying.

From Maven Central's artifacts where Java and Maven are (``java``), from the official image where Docker is
(``docker``). ``server`` chooses.
"""
