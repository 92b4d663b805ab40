"""Graded knowledge lookup for agents."""
