"""What groups of every type have in common: where their records stand, how they are listed and configured."""
