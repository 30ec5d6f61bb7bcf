"""One partition's log, as its users see it, and the appends to it."""
