"""Suites: one seed from begin to verdict, with the judges of each."""
