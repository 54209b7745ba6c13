from __future__ import annotations

from fsdil_bench.cache.folder import cache_folder, file_name_part


def test_names_become_parts_of_file_names():
    assert file_name_part("tiny-clip") == "tiny-clip"
    assert file_name_part("ViT-B-16:a+b c.pt") == "ViT-B-16_a_b_c.pt"
    assert len(file_name_part("x" * 500)) == 100


def test_the_folder_can_be_set(monkeypatch, tmp_path):
    monkeypatch.setenv("FSDIL_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
