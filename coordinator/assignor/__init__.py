"""Partition assignors: functions from members and assignable partitions to a target assignment. Pure."""
