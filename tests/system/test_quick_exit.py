"""The quick end of a process: nothing that Python does at the end is left out but taking apart."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import atexit, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from fsdil_bench.system.quick_exit import leave

class Last:
    def __del__(self):
        print("taken apart")

def slow():
    time.sleep(0.3)
    print("thread")

kept = Last()
atexit.register(lambda: print("exit function"))
pool = ThreadPoolExecutor(1)
pool.submit(print, "idle").result()  # its thread waits for more
threading.Thread(target=slow).start()
print("printed", end="")
sys.stderr.write("said")
leave(7)
"""


def test_threads_exit_functions_and_output_are_not_lost():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 7
    assert done.stdout == "idle\nprintedthread\nexit function\n"
    assert done.stderr == "said"


def test_the_command_keeps_its_exit_codes():
    for words, code in (["--version"], 0), (["run", "--method", "ncm"], 2), (["show", "/no"], 2):
        done = subprocess.run([sys.executable, "-m", "fsdil_bench", *words], capture_output=True)
        assert done.returncode == code, done.stderr
