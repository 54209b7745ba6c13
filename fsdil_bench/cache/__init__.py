"""Arrays that are kept between runs, for instance features: the store, its claims, its limit, its
inventory.

It imports `system`.
"""
