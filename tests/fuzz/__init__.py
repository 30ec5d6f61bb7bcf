"""Fuzzing of everything that is read from a disk: `targets` defines the conditions that must hold.
`test_targets` is a small sample in `make test`; `python -m tests.fuzz` (`make fuzz`) runs for any time.
"""
