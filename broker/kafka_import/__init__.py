"""Taking over a data directory of Apache Kafka (KRaft): `barnabas import`, and `serve` in place by a flag.

`kafka_directory` reads it, `share_groups`, `consumer_groups`, `classic_groups` and `transactions` find what
is in it, `importing` writes ours. Taken are topics with their ids, partitions, settings and records; share
groups and where they stand, consumer and classic groups, committed offsets, and the settings of groups;
transactions, SCRAM credentials and quotas; not ACLs, nor settings of brokers (docs/decisions/0011). An import
is done by a process of its own while no broker uses either directory, so it works with the machine's files
directly.
"""
