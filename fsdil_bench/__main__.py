"""`python -m fsdil_bench` is the same as `fsdil-bench`."""

from .cli import main

if __name__ == "__main__":
    main()
