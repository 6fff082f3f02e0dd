"""Test configurations: files, overrides, and one-line errors for invalid files and values."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")


from ninetka_train.learning.config import check_config, load_config, read_settings


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("seed: 2024-13-45", "month must be in 1..12"),
        ("seed: " + 5000 * "9", "Exceeds the limit"),
        (1200 * "[", "it is nested too deeply"),
        (1200 * "a: {", "it is nested too deeply"),
        ("seed: 1\nseed: 2", "line 2: key 'seed' is given twice"),
        ("network:\n  width: 3\n  width: 4", "line 3: key 'width' is given twice"),
        ("seed: !!python/object:os.system x", "line 1: could not determine a constructor"),
        ("a: b: c", "line 1: mapping values are not allowed here"),
        ("seed: 1\0", "unacceptable character #x0000"),
    ],
)
def test_an_invalid_file_is_a_one_line_error(tmp_path, text, problem):
    path = tmp_path / "odd.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"odd\.yaml: is not a YAML file of settings: {problem}") as caught:
        load_config(path)
    assert len(str(caught.value).splitlines()) == 1


def test_keys_are_text():
    with pytest.raises(ValueError, match="1=1: Keys should be strings"):
        check_config({1: 2})


@pytest.mark.parametrize("text", ["3", "[]", "seed"])
def test_a_file_without_keys_is_named(tmp_path, text):
    (tmp_path / "odd.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"odd\.yaml: expected keys and values, got"):
        read_settings(tmp_path / "odd.yaml")


def test_a_folder_is_named(tmp_path):
    with pytest.raises(ValueError, match="cannot be read: "):
        read_settings(tmp_path)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"seed: 1 # \xe9", "seed: 1".encode("utf-16")])
def test_a_file_that_is_not_utf_8_is_named(tmp_path, data):
    (tmp_path / "odd.yaml").write_bytes(data)
    with pytest.raises(ValueError, match=r"odd\.yaml: is not UTF-8 text: .* at byte"):
        read_settings(tmp_path / "odd.yaml")


def test_overrides_are_read_the_same_way():
    with pytest.raises(ValueError, match=r"'\{a: 1, a: 2\}' is not a YAML value: line 1: key 'a' is given twice"):
        load_config(None, ["network={a: 1, a: 2}"])


@pytest.mark.parametrize("text", ["1000", "1_000", "1e3", "1E+3", "0.1e4", " 1e3", "1e3 # moves"])
def test_whole_numbers_are_read_with_exponents_and_underscores(tmp_path, text):
    (tmp_path / "moves.yaml").write_text(f"ppo: {{moves: {text}\n}}", encoding="utf-8")
    for config in (load_config(tmp_path / "moves.yaml"), load_config(None, [f"ppo.moves = {text}"])):
        assert config.ppo.moves == 1000
    assert load_config(None, ["name=1e3"]).name == "1e3"


def test_plain_values_are_read(tmp_path):
    path = tmp_path / "plain.yaml"
    path.write_text("a: 1\nb: [2, 3]\nc: {d: x, e: .5}\nf:\n<<: {g: true, a: 2}", encoding="utf-8")
    assert read_settings(path) == {"a": 1, "b": [2, 3], "c": {"d": "x", "e": 0.5}, "f": None, "g": True}
    path.write_text("# nothing", encoding="utf-8")
    assert read_settings(path) == {}


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "/a", "a\\b", "a\0b", ".a", "a.", "-a", " ", "a b", "é", "a\n", "CON", "nul.txt", 101 * "a"],
)
def test_names_of_runs_are_checked(name):
    with pytest.raises(ValueError, match=r"name='.*expected up to 100 of"):
        check_config({"name": name})


@pytest.mark.parametrize("name", ["a", "_", "quick", "gen-4", "2026-01-02_a.b+c", "console", 100 * "a"])
def test_ordinary_names_of_runs_are_allowed(name):
    assert load_config(None, [f"name='{name}'"]).name == name


@pytest.mark.parametrize(
    "setting",
    ["ppo.games=10000000000000", "network.blocks=1000000", "network.width=1e9", "threads=99999", "seed=1e30",
     "alphazero.simulations=1000000000000", "ppo.learning_rate=.inf", f"players=[{200 * '2,'}]"],
)  # fmt: skip
def test_absurd_settings_are_refused(setting):
    with pytest.raises(ValueError, match=rf"^the configuration: {setting.partition('=')[0]}=") as caught:
        load_config(None, [setting])
    assert len(str(caught.value)) < 300


def test_only_the_first_wrong_keys_are_reported():
    with pytest.raises(ValueError, match=r"unknown key 'k0'; .*'k4'; 95 more$"):
        load_config(None, [f"k{number}=1" for number in range(100)])


@pytest.mark.parametrize("network", [{"width": 1}, {"mixing": "attention", "width": 6}])
def test_networks_that_cannot_be_built_are_refused_before_a_run_starts(network):
    with pytest.raises(ValueError, match=r"width=[16]: expected"):
        check_config({"network": network})
