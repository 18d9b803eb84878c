"""The read side of the pages: one query function per page, with its fetch plan, its filters and its counters."""
