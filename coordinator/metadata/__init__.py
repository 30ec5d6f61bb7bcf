"""The cluster's metadata: topics, partitions, configurations, features, nodes and blocks of producer ids.

`image.py` is the state and changes only by replay; `topic_decisions.py` and `config_decisions.py` turn a wish
into records or a refusal; `controller.py` appends them, replays them and answers; `metadata_log.py` and
`snapshot.py` keep them, in Kafka's own formats.
"""
