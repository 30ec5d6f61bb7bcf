"""The Kafka wire protocol of Barnabas: frames, headers, the APIs, record batches, errors.

This package wraps kio, which knows the layout of each API's messages in each version; nothing outside this
folder imports kio. Nothing here does I/O, keeps time or interprets a message.
"""
