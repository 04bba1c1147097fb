"""Deterministic simulation of many clients on one object store: one seed decides everything.

Start with `scheduler` (who runs when), then `bucket` and `store` (what a request does), `faults` (what
goes wrong), `world` (a client's view), `actors` (what clients do) and `checkers` (who judges it).
`python -m sim.run --help` runs seeds.
"""
