"""Open files, delayed removals, listings and the room on the disk, shared by all logs of a directory."""
