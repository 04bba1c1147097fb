"""Simulated legacy clients: they know Delta or Iceberg, and not LakeVilla."""
