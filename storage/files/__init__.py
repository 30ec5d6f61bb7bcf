"""Open files, delayed removals, listings and the full disk, shared by all logs of a directory."""
