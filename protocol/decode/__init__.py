"""Hand-written decoders, of requests for the broker and of responses for a client.

They exist for messages whose payload must not be copied, for messages that are sent for every record, and for
messages that kio cannot read.
"""
