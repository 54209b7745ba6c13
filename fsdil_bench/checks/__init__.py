"""Conformance checks for methods: does one keep to the contract, the seeds and the protocol?

On the command line: `fsdil-bench check METHOD`. In a test of your own:

    import pytest
    from fsdil_bench.checks import method_checks

    @pytest.mark.parametrize("check", method_checks("my-method", plugins=["my_method.py"]))
    def test_my_method(check):
        check()

Every check is a short function in a module of this folder. It looks at short runs of the method on
a small part of a scenario (`small_world.py`). It returns what it found, or raises `CheckError` with
what is wrong and how to fix it. Checks say whether a method may be compared with other methods, not
whether it is good.

This folder imports `runs` and what that may import. Only `cli` and tests import it.
"""

from __future__ import annotations

from .finding import CheckError, Finding
from .suite import CHECKS, MethodCheck, check_method, method_checks

__all__ = ["CHECKS", "CheckError", "Finding", "MethodCheck", "check_method", "method_checks"]
