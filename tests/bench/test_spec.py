from __future__ import annotations

from dataclasses import replace

from fsdil_bench.spec import RunSpec, _essence, _sources, code_version, run_id

SPEC = RunSpec(
    method="m", config={"a": 1}, scenario="s-1shot", seed=0, backbone="b", precision="fp32"
)


def spec(**changes):
    return replace(SPEC, **changes)


def identity(one=SPEC, **changes):
    known = {"stream": "s", "weights": "w", "code": {"method": "c"}} | changes
    return run_id(one, **known)


def test_everything_that_changes_results_changes_the_id():
    variants = [
        identity(),
        identity(spec(seed=1)),
        identity(spec(config={"a": 2})),
        identity(spec(precision="bf16")),
        identity(spec(base_limit=3)),
        identity(stream="other"),
        identity(weights="other"),
        identity(code={"method": "d"}),
    ]
    assert len(set(variants)) == len(variants)
    assert identity() == identity()


def test_texts_are_not_code():
    one = 'def f(x):\n    """Doc."""\n    return x  # why\n'
    two = "def f(x):\n    return x\n"
    assert _essence(one) == _essence(two)
    assert _essence(one) != _essence(two.replace("return x", "return -x"))


def test_code_version_follows_imports_of_the_same_package():
    names = {path.name for path in _sources("fsdil_methods.zero_shot:ZeroShot")}
    assert names == {"zero_shot.py", "text_head.py"}
    drawn = {path.name for path in _sources("fsdil_scenarios.drawn.build:build")}
    assert {"build.py", "world.py", "pose.py", "sketch.py"} <= drawn
    assert code_version("fsdil_methods.ncm:X") != code_version("fsdil_methods.slda:X")
