"""Hand-written decoders of requests, and the reader that they share with the decoders in `client`.

They exist for messages whose payload must not be copied, for messages that are sent for every record, and for
messages that kio cannot read.
"""
