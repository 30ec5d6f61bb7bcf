"""The share-partition leader of KIP-932: which records are in flight, who holds them, and share sessions.

Everything here is pure and synchronous: time is an argument, nothing is read or written, and what must be
recorded is handed back as a decision.
"""
