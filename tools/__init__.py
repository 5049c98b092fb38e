"""What is needed to make the project, and not to use it."""
