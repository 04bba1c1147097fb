"""Views: the statements that make them, and what they stand for."""
