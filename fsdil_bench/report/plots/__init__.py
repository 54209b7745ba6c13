"""Figures of runs, PNG, SVG or PDF by the file's ending, in one style (`style`).

They need matplotlib (extra `plots`), which is imported only when a figure is drawn.
"""
