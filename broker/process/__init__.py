"""The broker as a process: its command line, its log, and how it tells that it is well."""
