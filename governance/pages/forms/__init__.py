"""Forms validate and convert what a browser sends; verbs decide and write (DESIGN, rules of the house)."""
