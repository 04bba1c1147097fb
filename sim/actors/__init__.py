"""What simulated clients do: transactions drawn from the seed, and the audit after the faults."""
