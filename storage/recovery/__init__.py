"""Opening a log: the state is loaded from the disk, and the damage of a crash is repaired."""
