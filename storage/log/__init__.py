"""One partition's log, with its public methods, and the appends to it."""
