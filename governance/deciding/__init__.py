"""Deciding: the verbs of deciders, and what helps to decide well."""
