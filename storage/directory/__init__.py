"""The data directory: its logs, the files beside them, and what goes out of the way."""
