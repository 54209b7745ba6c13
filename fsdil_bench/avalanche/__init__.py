"""Avalanche both ways: scenarios as Avalanche benchmarks, Avalanche strategies as methods.

It imports `runs` and what that may import. Avalanche itself is an extra.
"""
