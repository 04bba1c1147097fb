"""Benchmarks: LakeVilla beside its peers, in one run on the same stores.

`python -m bench.base` compares the plain format's statements with deltalake. The frame has one module per
idea, so that more systems and cases fit in: `systems` (who is measured), `stores` (on what), `timing` (how),
`report` (what is told), `data` and `biglog` (the tables). Nothing here is part of the package.
"""
