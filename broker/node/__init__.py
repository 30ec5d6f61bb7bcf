"""One broker: creates, connects and closes its parts."""
