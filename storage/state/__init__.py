"""The state of one open log, and its files."""
