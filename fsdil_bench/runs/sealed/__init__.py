"""A run whose method lives in processes of its own: the harness keeps labels, domains and order.

It imports the rest of `runs`.
"""
