"""The asyncio share consumer. Nothing of it is there yet."""
