"""A plugin file for the tests of sealed runs: the toy methods without scenarios."""

from __future__ import annotations

from toy_plugin import fsdil_methods as fsdil_methods
