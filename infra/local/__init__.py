"""Weft on one machine: the handlers that are deployed, behind stand-ins for AWS's services, on loopback alone."""
