"""The Kafka wire protocol as Barnabas speaks it: frames, headers, the APIs served, record batches, errors.

kio's types stand behind this package: what an API's message looks like in one version is kio's subject, and
nothing outside this folder imports it. Nothing here does I/O, keeps time or knows what a message means.
"""
