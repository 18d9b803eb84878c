"""What runs the service in earnest: whose address asks, what is logged and counted, what is bounded (SPEC 10)."""
