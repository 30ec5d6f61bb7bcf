"""The cluster's metadata: topics, partitions, configurations, features, nodes and blocks of producer ids.

`image.py` is the state and changes only by replay. `topic_decisions.py` and `config_decisions.py` turn a
request into records or a refusal; `controller.py` appends the records, replays them and answers;
`metadata_log.py` and `snapshot.py` store them, in Kafka's own formats.
"""
