"""The subjects of the histories: each module generates one kind, from a seed."""
