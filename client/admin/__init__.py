"""Reads and changes topics, groups and settings, as an administrator does, with Kafka's APIs alone.

`connection` finds brokers and retries, and the other modules have functions over it, one module per subject:
`topics`, `settings`, `groups`, `group_positions`. They work with Barnabas and with Apache Kafka.
"""
