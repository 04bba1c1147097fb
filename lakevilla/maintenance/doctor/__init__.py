"""What is wrong with a lake or its store, and what to do about it."""
