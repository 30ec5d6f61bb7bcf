"""Decoders written by hand: of requests, as the broker reads them, and of responses, as a client does.

They are of the messages whose payload must not be copied, or that follow every record, and of what kio cannot
read.
"""
