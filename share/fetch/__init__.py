"""The share fetch: it finds the leaders, waits for records, and acquires them when it answers."""
