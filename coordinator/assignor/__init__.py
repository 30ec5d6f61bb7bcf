"""Partition assignors: pure functions from members and assignable partitions to a target assignment."""
