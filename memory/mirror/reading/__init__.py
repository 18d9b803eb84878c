"""A team's files in: bytes to records and a report. Nothing here writes."""
