"""Benchmarks: LakeVilla and its peers, in one run on the same stores.

`python -m bench.base` compares statements with deltalake, Spark + Delta and Spark + Iceberg; `python -m
bench.large` shows one large table on Spark in little memory. The frame has one folder per idea, so that more
systems and cases fit in: `systems` (what is measured), `cases` (which statements), `stores` (where the tables
are), `data` (the rows of the tables), `measures` (times, memory, reports) and `spark` (sessions and jars).
Nothing here is part of the package.
"""
