"""Spark SQL as text and as values: parsing, types, predicates. Pure; no store, no engine, no clock."""
