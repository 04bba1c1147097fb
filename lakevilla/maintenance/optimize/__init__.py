"""Rewriting files of tables so that they are quick to read."""
