"""Go passes the conformance checks of all games."""

import pytest

from ninetka_agents.conformance import CHECKS, check

WITHOUT_SEARCH = [name for name in CHECKS if name != "search"]


def test_it_passes_the_checks():
    check("go", games=1, only=WITHOUT_SEARCH)


@pytest.mark.exhaustive
def test_searches_of_go_pass():
    check("go", games=1, only=["search"])


@pytest.mark.parametrize(
    "spec",
    [
        "go:planes=alphazero,scoring=territory,komi=0",
        "go:handicap=4,allow_resign=true",
        pytest.param("go:ko=situational,max_plies=80", marks=pytest.mark.exhaustive),
    ],
)
def test_other_options_pass_the_checks_that_depend_on_options(spec):
    """Only the checks of search and environments do not run, because they do not depend on these options."""
    check(spec, games=1, only=[name for name in CHECKS if name not in ("search", "one seat", "pettingzoo")])
