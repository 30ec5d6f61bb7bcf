"""Opening a log: what is on the disk is taken over, and what a crash left is put right."""
