"""Texts of several statements, statements of a session and of the lake, and places in a user's text."""
