"""The machinery of every coordinator over an internal topic: operations decide, append, replay and answer.

`steps` is the language in which an operation asks for effects. `PartitionOperations` runs the operations on
one partition, one after another; `TopicOperations` has one for each partition of the topic. `interfaces`
lists their needs. Each coordinator defines its own records.
"""
