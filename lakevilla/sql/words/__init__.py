"""Names that users may misspell: functions, and what is close to a name."""
