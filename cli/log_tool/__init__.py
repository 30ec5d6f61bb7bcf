"""`barnabas log`: `dump`, `describe` and `verify` show the logs on the disk, with or without a broker.

All of them use the broker's own decoders, open files for reading only, and take no lock. They also read a
directory that Apache Kafka wrote. They repair nothing, because recovery does that when a broker starts. Only
`drop-damaged` and `restore-topic-id` write, for damage that a broker cannot repair; they lock the data
directory first.
"""
