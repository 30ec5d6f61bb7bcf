"""Publishes the counts of the broker's parts as metrics; docs/metrics.md has their names."""
