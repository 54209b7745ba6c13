"""Arrays that are kept between runs, for instance features: the folder, the store and its file, who
computes what, the limit on the size, the inventory.

Folders from `data` to `cli` may import it. It imports `system` and `errors`.
"""
