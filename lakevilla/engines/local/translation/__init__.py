"""From Spark SQL to DuckDB SQL, with Spark's types and Spark's meaning.

A typed translation: every expression is translated together with its Spark type, so that implicit casts,
result types and failures are those of Spark in ANSI mode, with UTC as the session's time zone. It is an
allow-list by construction: a construct or function without a rule here is refused by name, never passed
through. Relations and columns get names of our own (`t1.c7`), so that nothing depends on how DuckDB would
resolve the user's names.
"""
