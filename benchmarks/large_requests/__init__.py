"""Large requests, and how long they make other clients wait."""
