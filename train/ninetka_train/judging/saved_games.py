"""Games of a match in files: save games when they end, read them to resume the match, or compute results from them.

Start reading at `GameSaver` and `read_results`. The file format is in `ninetka_env.api.records`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np

from ninetka_env.api.record_files import read_records, write_records
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import Variant
from ninetka_env.core.text import quote
from ninetka_train.judging.results import FAILURE_TAG, NO_ACTION, MatchSettings, MoveTimes, Results, saved_name
from ninetka_train.judging.schedule import Schedule

GROUP_TAG, SEED_TAG, OPENING_TAG, LINEUP_TAG = "group", "seed", "opening_plies", "lineup"
"""Tags of saved games: the rotation group, from 0 in each lineup; the seed of the match; the number of random opening
plies, if not 0; the number of the lineup, from 0, if there are several."""
UNKNOWN_NAME = "?"
"""Name of an agent if a saved game does not name it."""


def game_records(results: Results, games: Iterable[int] | None = None) -> Iterator[GameRecord]:
    """Yield the game records of `games`, by default of all games.

    Tags named after the seats, such as `black`, hold the names of the agents.
    """
    settings, schedule = results.settings, results.schedule
    variant, groups = settings.variant, schedule.group_in_lineup
    for game in range(len(schedule.seatings)) if games is None else games:
        start = variant.game_class(results.starts[schedule.group_of[game]][None].copy())
        agents = [saved_name(settings.agents[agent]) for agent in schedule.seatings[game]]
        tags = dict(zip(_seats(variant), agents, strict=True))
        tags |= {} if settings.seed is None else {SEED_TAG: str(settings.seed)}
        tags |= {GROUP_TAG: str(groups[game])}
        tags |= {OPENING_TAG: str(settings.opening_plies)} if settings.opening_plies else {}
        tags |= {LINEUP_TAG: str(schedule.lineup_of[game])} if len(schedule.lineups) > 1 else {}
        tags |= {FAILURE_TAG: _failure(results, game)} if game in results.failures else {}
        yield GameRecord(
            variant=variant,
            actions=tuple(int(action) for action in results.actions[game] if action != NO_ACTION),
            scores=tuple(results.scores[game].tolist()),
            winner=int(results.winners[game]),
            drawn=start.drawn_actions() if variant.sizes.num_drawn else (),
            event=results.events.get(game),
            tags=tags,
        )


def _seats(variant: Variant) -> list[str]:
    """Return the names of the tags that hold the agents' names, in the order of seats."""
    return [seat.lower() for seat in variant.definition.seats[: variant.num_players]]


def _failure(results: Results, game: int) -> str:
    """Return the description of a game's failure, without the names of the game and the agent.

    The record names both elsewhere.
    """
    return results.failures[game].removeprefix(results.failure_sentence(game, ""))


class GameSaver:
    """Callback that saves the games of a match in a file when they end; the match continues if writing fails."""

    def __init__(self, path: Path, earlier: Mapping[int, GameRecord] | None = None) -> None:
        """Save games in the file `path`.

        Args:
            path: path of the file; without `earlier` games it is written anew.
            earlier: the games that the file has already, by their index in the schedule.
        """
        self.path = path
        self.error: Exception | None = None
        self.earlier = dict(earlier or {})
        """The games that the file had before."""
        self._saved = set(self.earlier)
        in_order = list(self.earlier) == sorted(self.earlier)
        self._last: float = max(self._saved, default=-1) if in_order else math.inf

    def __call__(self, results: Results, games: range) -> None:
        """Write the finished games that are not in the file yet; see `ninetka_train.judging.arena.BatchCallback`."""
        new = [game for game in games if results.winners[game] != UNFINISHED and game not in self._saved]
        if self.error or not new:
            return
        try:
            self._write(results, new)
        except KeyboardInterrupt:  # some of the games may be in the file already
            self._write(results, new, rewrite=True)
            raise
        except (OSError, ValueError) as error:
            self.error = error

    def _write(self, results: Results, new: Sequence[int], *, rewrite: bool = False) -> None:
        """Append games to the file, or write the whole file.

        The whole file is written if it is new, if `rewrite` is true, or if appending would break the schedule's order.
        """
        if self._saved and self._last < new[0] and not rewrite:
            write_records(self.path, game_records(results, new), append=True)
            self._last = new[-1]
        else:
            games = sorted(self._saved | set(new))
            write_records(self.path, self._merged_records(results, games))
            self._last = games[-1]
        self._saved |= set(new)

    def _merged_records(self, results: Results, games: Sequence[int]) -> Iterator[GameRecord]:
        """Yield the records of `games` in this order; for an earlier game, the record from the file."""
        played = game_records(results, [game for game in games if game not in self.earlier])
        for game in games:
            yield self.earlier[game] if game in self.earlier else next(played)


def read_earlier_games(path: Path, settings: MatchSettings) -> dict[int, GameRecord]:
    """Read the games of a match, by their index in its schedule; a missing file has no games.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if a game is broken or of another match; the message names the first such game.
    """
    if not path.exists():
        return {}
    schedule = settings.make_schedule()
    groups = schedule.group_in_lineup
    # a seating determines its lineup, so the keys are unique
    places = {(int(groups[game]), tuple(seating)): game for game, seating in enumerate(schedule.seatings.tolist())}
    found: dict[int, GameRecord] = {}
    for number, record in enumerate(_read_games(path), 1):
        try:
            place = _schedule_index(record, settings, places, schedule)
            if place in found:
                raise ValueError("it is in the file twice")
        except ValueError as error:
            raise ValueError(f"{path}, game {number}: {error}") from None
        found[place] = record
    return found


def _read_games(path: Path) -> Iterator[GameRecord]:
    try:
        yield from read_records(path)
    except ValueError as error:
        raise ValueError(f"{error}; remove that game from the file to continue with the others") from None


def _schedule_index(
    record: GameRecord, settings: MatchSettings, places: Mapping[tuple[int, tuple[int, ...]], int], schedule: Schedule
) -> int:
    """Return the index of a game in the schedule.

    Args:
        record: the game.
        settings: settings of the match.
        places: maps (rotation group within the lineup, seating) to the index.
        schedule: schedule of the match.

    Raises:
        ValueError: if the game is of another match.
    """
    agents, names = [saved_name(name) for name in settings.agents], _names(record)
    here = {"game": settings.variant.spec, SEED_TAG: str(settings.seed), OPENING_TAG: str(settings.opening_plies)}
    there = {
        "game": record.variant.spec,
        SEED_TAG: record.tags.get(SEED_TAG, ""),
        OPENING_TAG: record.tags.get(OPENING_TAG, "0"),
    }
    for what, value in here.items():
        if there[what] != value:
            raise ValueError(f"it was played with {what} {there[what] or 'unknown'}, this match has {what} {value}")
    seating = tuple(agents.index(name) if name in agents else -1 for name in names)
    if tuple(sorted(seating)) not in schedule.lineups:
        raise ValueError(f"it was played by {', '.join(names)}, this match is of {', '.join(agents)}")
    group = record.tags.get(GROUP_TAG, "")
    place = places.get((int(group) if group.isdecimal() else -1, seating))
    if place is None:
        last = int(schedule.group_in_lineup.max())
        raise ValueError(f"it is of rotation group {group or UNKNOWN_NAME}, this match has groups 0 to {last}")
    lineup = str(schedule.lineup_of[place])
    if len(schedule.lineups) > 1 and record.tags.get(LINEUP_TAG) != lineup:
        number = record.tags.get(LINEUP_TAG, UNKNOWN_NAME)
        raise ValueError(f"it is of lineup {number}, which is number {lineup} here: name the agents in the same order")
    return place


def _names(record: GameRecord) -> tuple[str, ...]:
    return tuple(record.tags.get(seat) or UNKNOWN_NAME for seat in _seats(record.variant))


# Results of saved games


def read_results(paths: Sequence[Path]) -> tuple[Results, list[str]]:
    """Return the results of the games in files, and notes about excluded games.

    Unfinished games and games of incomplete rotation groups are excluded. A game without the tag `group`, such as a
    game of another program, is a separate group. Thinking times are unknown.

    Raises:
        OSError: if a file cannot be read.
        ValueError: if a game is broken, if games differ in variant or number of random plies, or if no game remains.
    """
    records = [(number, record) for number, path in enumerate(paths) for record in read_records(path)]
    where = ", ".join(map(str, paths))
    openings = {record.tags.get(OPENING_TAG, "0") for _, record in records}
    for text in openings:
        if not text.isdecimal():
            raise ValueError(f"{where}: {OPENING_TAG} {quote(text)}: expected an integer of at least 0")
    for what, values in {"game": {record.variant.spec for _, record in records}, OPENING_TAG: openings}.items():
        if len(values) > 1:
            kinds = " and ".join(sorted(values))
            raise ValueError(f"{where}: games with {what} {kinds}: expected games of one kind")
    over = [(number, record) for number, record in records if record.winner != UNFINISHED]
    keys = _group_keys(over)
    sizes = Counter(keys)
    whole = [
        (key, record) for key, (_, record) in zip(keys, over, strict=True) if sizes[key] == _group_size(record, key)
    ]
    if not whole:
        raise ValueError(f"{where}: no complete rotation group of finished games")
    counts = {"that are not finished": len(records) - len(over), "of incomplete rotations": len(over) - len(whole)}
    notes = [f"left out are games {which}: {count}" for which, count in counts.items() if count]
    return _results([key for key, _ in whole], [record for _, record in whole]), notes


_GroupKey = tuple[object, ...]
"""Key that the games of a rotation group share. A game without a group has a key of one unique number."""


def _group_keys(records: Sequence[tuple[int, GameRecord]]) -> list[_GroupKey]:
    """Return the group key of each game. A seating that its group has already starts another group.

    Args:
        records: (number of the file, record) of each game.
    """
    keys: list[_GroupKey] = []
    seen: Counter[_GroupKey] = Counter()
    for place, (number, record) in enumerate(records):
        if GROUP_TAG not in record.tags:
            keys.append((place,))
            continue
        names = _names(record)
        key: _GroupKey = (number, record.tags.get(SEED_TAG), tuple(sorted(names)), record.tags[GROUP_TAG])
        keys.append((*key, seen[*key, names]))
        seen[*key, names] += 1
    return keys


def _group_size(record: GameRecord, key: _GroupKey) -> int:
    """Return the number of games in a complete group."""
    return 1 if len(key) == 1 else len(set(permutations(_names(record))))


def _results(keys: Sequence[_GroupKey], records: Sequence[GameRecord]) -> Results:
    """Return the results of games with these group keys."""
    variant, names = records[0].variant, [_names(record) for record in records]
    agents = {name: place for place, name in enumerate(dict.fromkeys(name for each in names for name in each))}
    groups = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    lineups = {lineup: place for place, lineup in enumerate(dict.fromkeys(map(_sorted, names)))}
    seatings = np.array([[agents[name] for name in each] for each in names])
    schedule = Schedule(
        [tuple(sorted(agents[name] for name in lineup)) for lineup in lineups],
        seatings,
        np.array([lineups[_sorted(each)] for each in names]),
        np.array([groups[key] for key in keys]),
    )
    seeds = {record.tags.get(SEED_TAG, "") for record in records}
    seed = int(seeds.pop()) if len(seeds) == 1 and all(map(str.isdecimal, seeds)) else None
    opening = int(records[0].tags.get(OPENING_TAG, "0"))
    settings = MatchSettings(
        tuple(agents), variant.spec, variant.num_players, schedule.games_per_lineup, seed, None, opening
    )
    results = Results(
        settings,
        schedule,
        winners=np.array([record.winner for record in records]),
        scores=np.array([record.scores for record in records]),
        starts=np.concatenate([records[game].start().records for game in schedule.first_games]),
        actions=_actions(records),
        times=MoveTimes.zeros(len(agents), len(variant.definition.stages)),
        events={game: record.event for game, record in enumerate(records) if record.event},
    )
    for game, record in enumerate(records):
        if record.event and (failure := record.tags.get(FAILURE_TAG)):
            results.failures[game] = results.failure_sentence(game, failure)
    return results


def _sorted(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _actions(records: Sequence[GameRecord]) -> np.ndarray[tuple[int, int], np.dtype[np.int16]]:
    """Return the actions of games, (T, maximum plies), padded with `NO_ACTION`."""
    actions = np.full((len(records), max(len(record.actions) for record in records)), NO_ACTION, np.int16)
    for row, record in zip(actions, records, strict=True):
        row[: len(record.actions)] = record.actions
    return actions
