"""How a client waits: pauses between tries, events with a deadline, turns of the event loop."""
