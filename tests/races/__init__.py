"""Real contenders for one database: threads on PostgreSQL, processes on either engine. `arena` starts them, `moves` is what they do."""
