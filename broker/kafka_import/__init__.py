"""Taking over a data directory of Apache Kafka (KRaft): `barnabas import`, and `serve` in place by a flag.

`kafka_directory` reads it, `share_groups` and `classic_groups` find the groups in it, `importing` writes
ours. Taken are topics with their ids, partitions, settings and records, the settings of groups, share groups
and where they stand, classic groups and committed offsets; not transactions under way, users, ACLs, quotas.
An import is done by a process of its own while no broker uses either directory, so it works with the
machine's files directly.
"""
