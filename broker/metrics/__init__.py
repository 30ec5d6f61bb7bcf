"""What the broker counts, and under which names (docs/metrics.md)."""
