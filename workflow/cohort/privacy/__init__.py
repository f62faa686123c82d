"""Protocols by which the server learns of clients' labels what it needs, and no more."""
