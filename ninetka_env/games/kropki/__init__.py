"""Kropki: dots that enclose dots."""
