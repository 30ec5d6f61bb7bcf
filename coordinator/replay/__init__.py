"""The machinery of every coordinator over an internal topic: operations decide, append, replay and answer.

`PartitionRuntime` runs them, one after another per partition. `steps` is the language in which an operation
asks for effects; `interfaces` lists the needs of the runtime. Each coordinator defines its own records.
"""
