"""Fuzzing of whatever is read from a disk: `targets` says what must hold, `test_targets` tries a little of it
in `make test`, `python -m tests.fuzz` (`make fuzz`) as much as there is time for.
"""
