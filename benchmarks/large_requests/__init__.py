"""Large requests, and how long they keep other clients waiting."""
