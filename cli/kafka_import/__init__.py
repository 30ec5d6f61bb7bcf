"""The import of a data directory of Apache Kafka (KRaft): `barnabas import`, or `serve` with a flag.

`kafka_directory` reads the directory; `share_groups`, `consumer_groups`, `classic_groups` and `transactions`
find the state in it; `importing` writes Barnabas's files. The import takes over topics with their ids,
partitions, settings and records; share groups and their progress; consumer and classic groups, committed
offsets, and the settings of groups; transactions, SCRAM credentials and quotas. It does not take over ACLs or
the settings of brokers (docs/decisions/0011). It runs in a process of its own while no broker uses either
directory, so it works with the machine's files directly.
"""
