"""Benchmarks: LakeVilla beside its peers, in one run on the same stores.

`python -m bench.base` compares statements with deltalake, Spark + Delta and Spark + Iceberg; `python -m
bench.large` shows one large table on Spark in little memory. The frame has one module per idea, so that more
systems and cases fit in: `systems` and `spark_systems` (who is measured), `local_cases` and `spark_cases`
(doing what), `stores` (on what), `timing` (how), `report` (what is told), `data`, `biglog` and `tpch` (the
tables). Nothing here is part of the package.
"""
