"""Hostile inputs: files, settings, flags, run folders and arrays that nobody should send, and what becomes of them."""
