"""A table of your own as a stream: reading, roles, cutting, encoding."""
