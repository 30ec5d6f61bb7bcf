"""The state of one share-partition (KIP-932): which records are in flight and who holds them; share sessions.

Everything here is pure and synchronous: time is an argument, nothing is read or written, and what must be
recorded is handed back as a decision. `SharePartitionLeader`, in `broker.leader`, joins it to log and store.
"""
