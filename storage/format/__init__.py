"""The formats of what lies beside the records: indexes, checkpoints, snapshots and the durable share state.

Pure: bytes and numbers in, bytes and numbers out. Files are the subject of the modules one folder up.
"""
