"""What a plugin is and how it is found: hooks, descriptors, the registry, a method and its options,
the hash of its code, new plugins from templates.

Folders from `cache` to `cli` may import it. It imports `errors` and `seeds` alone, and no torch,
because `fsdil-bench list` needs no more than this folder.
"""
