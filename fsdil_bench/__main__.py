"""`python -m fsdil_bench` is the same as `fsdil-bench`."""

from .cli import entry_point

if __name__ == "__main__":
    entry_point()
