"""The mirror out: rows to files, swapped in whole or not at all."""
