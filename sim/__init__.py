"""Deterministic simulation of many clients on one object store: one seed decides everything.

Start with `world`: `scheduler` (which client runs when), `bucket` and `store` (what a request does), `faults`
(what goes wrong), `client` (a client's view). Then `actors` and `legacy` (what clients do), `suites` and
`outside` (a seed from begin to verdict) and `checkers` (judges, separate from the code that they judge).
`planted` has known bugs that the simulation must find. `python -m sim.run --help` runs seeds.
"""
