"""Dead letters: copies of records that a share group gave up, in a topic of the group's choice (KIP-1191)."""
