"""The common parts of groups of every type: their records, registry, timers, lists and configurations."""
