"""SQL sessions: scripts, transactions by statements, settings."""
