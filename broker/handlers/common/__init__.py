"""Parts that several handlers use, and the longer parts of one."""
