"""The ledger: the one write path, the events, what they retell, and the proof that nobody touched them."""
