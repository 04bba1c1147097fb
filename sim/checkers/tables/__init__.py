"""Independent readers of table logs, and judges of single tables."""
