"""`barnabas bench`: measures produce and share consume on a running broker, Barnabas or Apache Kafka.

`workload` makes a topic of its own and removes it, `phases` measure, `summary` computes figures and prints
them.
"""
