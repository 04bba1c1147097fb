"""The simulated world: scheduler, store, faults, clients, the row engine and catalogs."""
