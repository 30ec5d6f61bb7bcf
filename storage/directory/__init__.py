"""The data directory: its logs, the files beside them, and the removal of deleted directories."""
