"""What every coordinator over an internal topic is made of: operations that decide, append, replay, answer.

`PartitionRuntime` runs them, one after another per partition; `steps` is the language in which they ask for
effects, `interfaces` what the runtime needs from outside. Which records there are, and what they mean, is
each coordinator's own.
"""
