from safetensors.torch import load_file

import fsdil_bench

SHORT = {"order": ["real", "sketch"], "base_limit": 2}


def test_the_penalty_acts(tmp_path):
    weights = []
    for strength in (0.0, 100.0):
        config = {"steps": 3, "strength": strength}
        record = fsdil_bench.run(
            "avalanche-mas", "drawn-1shot", **SHORT, config=config, out=tmp_path
        )
        state = load_file(record.folder / "domain-1" / "state.safetensors")
        weights.append(state["model.head.weight"])
    assert not weights[0].equal(weights[1])
