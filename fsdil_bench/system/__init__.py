"""What the operating system offers, made safe: files written as a whole, locks, archives,
processes and processors.

Everybody may import it. It imports `errors` and `progress` alone.
"""
