"""What the histories are about: each module makes one kind, out of a seed."""
