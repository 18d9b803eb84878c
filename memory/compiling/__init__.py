"""From rows to the guarded block, and what was told with it."""
