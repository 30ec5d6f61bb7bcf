"""One broker: the objects that it is made of, how they are opened, and how they are closed."""
