"""The formats of the data beside the records: indexes, checkpoints, snapshots and the durable share state.

Pure: bytes and numbers in, bytes and numbers out. The other folders of `storage` read and write the files.
"""
