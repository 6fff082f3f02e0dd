"""N games in which a learner plays one seat and opponents play the others: the basis of `one_seat.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded

from ninetka_env.core.batch import option_codes, play_all, restart_games
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_actions, check_choice, short_repr
from ninetka_env.core.outcome import REWARDS, write_rewards
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import StateArray, is_over, write_legal_mask, write_observation

MAX_STARTS = 100
"""Maximum number of attempts to start a game that does not end before the learner's first turn."""
ILLEGAL = ("raise", "lose")
"""What an illegal action of the learner does: raise `ValueError`, or end the game with the reward `ILLEGAL_REWARD`."""
ILLEGAL_REWARD = -1.0
"""The learner's reward for an illegal action; the same as in the wrapped AEC environment."""

Indices = npt.NDArray[np.int64]
Generators = np.random.Generator | Sequence[np.random.Generator]
"""One generator for all games, or one for each game. With one for each game, no game depends on another game."""


class Opponent(Protocol):
    """Interface of the agents that play the other seats, such as the agents of `ninetka_agents`."""

    name: str

    def act(self, games: StateArray, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return (N,) int64 legal actions for (N,) states of unfinished games."""
        ...


class OneSeatGames:
    """N games in which the learner plays one seat and opponents play the others.

    `OneSeatEnv` and `OneSeatVectorEnv` are based on this class.

    Attributes:
        games: (N,) states.
        seats: (N,) int8, the learner's seat in each game.
        observations: (N, C, H, W) int8, as the learner's seat sees each game.
        masks: (N, num_actions) int8, 1 for legal actions.
        rewards: (N,) float32, the learner's reward where the game has ended, else 0.
        terminated: (N,) bool, whether the game has ended.
        illegal: (N,) bool, whether an illegal action has ended the game; its state is the position before that action.
        last_actions: (N,) int64, the action played last in each game, -1 at the start.
    """

    def __init__(
        self,
        num_envs: int,
        variant: Variant,
        seat: int | str,
        opponents: Any,
        reward: str,
        illegal: str = "raise",
        names_games: bool = True,
    ) -> None:
        """Check the options and allocate the arrays.

        Args:
            num_envs: N, the number of games.
            variant: as in `OneSeatEnv`, like the following four arguments.
            seat: the learner's seat.
            opponents: the agents of the other seats.
            reward: one of `REWARDS`.
            illegal: one of `ILLEGAL`.
            names_games: whether error messages give the index of the game.

        Raises:
            ValueError: if an option is wrong; the message gives its name and the allowed values.
        """
        self.variant = variant
        self._reward = check_choice("reward", reward, REWARDS)
        self.loses_illegal = bool(check_choice("illegal", illegal, ILLEGAL))
        self._seat = seat_code(seat, variant.num_players)
        self._opponents = _group_opponents(opponents, variant.num_players)
        self._opponent_of = np.full(variant.num_players, -1, np.int8)  # by relative seat; -1 for the learner
        for number, (relative_seats, _) in enumerate(self._opponents):
            self._opponent_of[relative_seats] = number
        self._names_games = names_games
        self._options = option_codes(variant, num_envs)
        self.games = np.zeros(num_envs, variant.dtype)
        self.seats = np.zeros(num_envs, np.int8)
        self.observations = np.zeros((num_envs, *variant.sizes.planes), np.int8)
        self.masks = np.zeros((num_envs, variant.num_actions), np.int8)
        self.rewards = np.zeros(num_envs, np.float32)
        self.terminated = np.zeros(num_envs, np.bool_)
        self.illegal = np.zeros(num_envs, np.bool_)
        self.last_actions = np.full(num_envs, -1, np.int64)

    def _check_started(self, indices: Indices | int) -> None:
        """Raise `gymnasium.error.ResetNeeded` unless the selected games have been started."""
        if not self.games["num_players"][indices].all():
            raise ResetNeeded("there is no game yet: call reset first")

    @contextmanager
    def rollback_on_error(self) -> Iterator[None]:
        """Restore the games if an exception leaves the context, such as an opponent's error or `KeyboardInterrupt`."""
        before = self.games.copy(), self.seats.copy(), self.last_actions.copy(), self.illegal.copy()
        try:
            yield
        except BaseException:
            self.games[:], self.seats[:], self.last_actions[:], self.illegal[:] = before
            self._write_outputs(np.flatnonzero(self.games["num_players"]))  # only the games that have been started
            raise

    def restart(
        self,
        indices: Indices,
        rng: Generators,
        seats: npt.NDArray[np.int8] | None = None,
        positions: StateArray | None = None,
        last_action: int = -1,
    ) -> None:
        """Restart the selected games and let the opponents move until it is the learner's turn.

        Args:
            indices: the games to restart.
            rng: the random numbers of the seats, the random starts and the opponents.
            seats: (N,) int8, the learner's seat in each game, -1 to draw it; None for the seat of the constructor.
            positions: (len(indices),) states to start from; None for new games.
            last_action: the action that led to the positions, -1 for none.

        Raises:
            ValueError: if a new game has ended `MAX_STARTS` times before the learner's turn, or if the opponents end a
                game that starts from a position before the learner's turn.
        """
        if seats is None:
            seats = np.full(len(self.games), self._seat, np.int8)
        for _ in range(MAX_STARTS if positions is None else 1):
            self._start(indices, rng, seats, positions, last_action)
            indices = indices[self.terminated[indices]]
            if len(indices) == 0:
                return
        where, seat = self._label(int(indices[0])), self.seats[indices[0]]
        if positions is None:
            raise ValueError(f"{where}it ended {MAX_STARTS} times before seat {seat} could move")
        raise ValueError(
            f"{where}the opponents end it from this position before the learner, seat {seat}, can move: "
            "choose another position or seat"
        )

    def _start(
        self,
        indices: Indices,
        rng: Generators,
        seats: npt.NDArray[np.int8],
        positions: StateArray | None,
        last_action: int,
    ) -> None:
        self.seats[indices] = seats[indices]
        drawn = indices[seats[indices] < 0]
        self.seats[drawn] = _draw(rng, drawn, self.variant.num_players, np.int64)
        self.last_actions[indices] = last_action
        self.illegal[indices] = False
        if positions is None:
            streams = np.zeros(len(self.games), np.uint64)
            streams[indices] = _draw(rng, indices, 2**64, np.uint64)
            restart_games(self.games, indices, self._options, streams)
        else:
            self.games[indices] = positions
        self._let_opponents_move(indices, rng)
        self._write_outputs(indices)

    def play(self, indices: Indices, actions: npt.NDArray[np.int64], rng: Generators) -> None:
        """Play the learner's actions in the selected games, then let the opponents move.

        Raises:
            ValueError: if an action is illegal, unless such actions end the game. For an action of the learner, no game
                has changed, and the message names the game. For an action of an opponent, the message names the
                opponent.
            gymnasium.error.ResetNeeded: if a game has not been started.
        """
        self._check_started(indices)
        going, chosen = indices, actions
        if self.loses_illegal:
            legal = self._find_legal(indices, actions)
            self.illegal[indices[~legal]] = True
            going, chosen = indices[legal], actions[legal]
        if (place := play_all(self.games, going, chosen, np.zeros(len(going), np.bool_))) >= 0:
            self._raise_illegal(int(going[place]), int(chosen[place]))
        self.last_actions[going] = chosen
        self._let_opponents_move(going, rng)
        self._write_outputs(indices)

    def _find_legal(self, indices: Indices, actions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which actions are legal; raise `ValueError` for actions outside of the action space, or after the end.

        For an action of a finished game, and outside of the action space, it is a mistake of the calling program.
        """
        wrong = (actions < 0) | (actions >= self.variant.num_actions) | self.terminated[indices]
        if wrong.any():
            place = int(wrong.argmax())
            self._raise_illegal(int(indices[place]), int(actions[place]))
        legal: npt.NDArray[np.bool_] = self.masks[indices, actions] == 1
        return legal

    def _raise_illegal(self, index: int, action: int) -> NoReturn:
        what = self.game(index).describe_illegal(action)
        if self.illegal[index]:
            what = f"action {action} is illegal: an illegal action has ended the game, call reset first"
        raise ValueError(f"{self._label(index)}{what}")

    def _label(self, index: int) -> str:
        return f"game {index}: " if self._names_games else ""

    def game(self, index: int) -> Game:
        """Return the current position as a `Game` that shares memory with this object.

        Raises:
            gymnasium.error.ResetNeeded: if the game has not been started.
        """
        self._check_started(index)
        game: Game = self.variant.game_class(self.games[index : index + 1])
        last = int(self.last_actions[index])
        game.last_action = None if last < 0 else last
        return game

    def _let_opponents_move(self, indices: Indices, rng: Generators) -> None:
        """Play the opponents' moves until each selected game is over or the learner is to move."""
        turns = np.zeros(len(indices), np.int8)
        while _write_turns(self.games, indices, self.seats, turns):
            playing = self._opponent_of[turns]
            for number, (_, agent) in enumerate(self._opponents):
                theirs = indices[playing == number]
                if len(theirs):
                    self._move(agent, theirs, rng)

    def _move(self, agent: Opponent, indices: Indices, rng: Generators) -> None:
        """Let an opponent move in the selected games; raise `ValueError` with its name if an action is illegal."""
        if isinstance(rng, np.random.Generator):
            actions = _act(agent, self.games[indices], rng)
        else:
            actions = np.concatenate([_act(agent, self.games[[i]], rng[i]) for i in indices.tolist()])
        if (place := play_all(self.games, indices, actions, np.zeros(len(indices), np.bool_))) >= 0:
            game = self.game(int(indices[place]))
            raise ValueError(f"opponent {_name(agent)!r}: {game.describe_illegal(int(actions[place]))}")
        self.last_actions[indices] = actions

    def _write_outputs(self, indices: Indices) -> None:
        flat = self.observations.reshape(len(self.games), -1)
        results = self.masks, self.rewards, self.terminated
        _write_outputs(self.games, indices, self.seats, self.illegal, self._reward, flat, *results)


def seat_code(seat: Any, num_players: int) -> int:
    """Return the number of the learner's seat, or -1 for `"random"`; raise `ValueError` for other values."""
    return check_choice("seat", seat, ("random", *range(num_players))) - 1


def check_opponent(agent: Any) -> None:
    """Raise `ValueError` unless an object can be an opponent."""
    if callable(getattr(agent, "act", None)) and not isinstance(agent, type):
        return
    hint = f": create an instance, {agent.__name__}(...)" if isinstance(agent, type) and hasattr(agent, "act") else ""
    raise ValueError(
        f"opponents: {short_repr(agent)} is neither an agent's spec nor an agent, "
        f"an object with a name and a method act(games, rng){hint}"
    )


def _group_opponents(opponents: Any, num_players: int) -> list[tuple[list[int], Opponent]]:
    """Return each distinct agent with its relative seats; relative seat r (1..n-1) is r places after the learner's."""
    is_many = isinstance(opponents, Sequence) and not isinstance(opponents, str)
    given = list(opponents) if is_many else [opponents] * (num_players - 1)
    if len(given) != num_players - 1:
        raise ValueError(f"opponents: {len(given)} given, expected one for all or {num_players - 1}, one per seat")
    for one in given:
        check_opponent(one)
    agents = {id(one): one for one in given}
    return [([r for r, one in enumerate(given, start=1) if id(one) == key], agent) for key, agent in agents.items()]


def _name(agent: Any) -> str:
    return str(getattr(agent, "name", type(agent).__name__))


def _act(agent: Opponent, games: StateArray, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return an opponent's actions; errors about their type or shape name the opponent."""
    answer = agent.act(games, rng)
    try:
        return check_actions(answer, len(games))
    except (TypeError, ValueError) as error:
        raise type(error)(f"opponent {_name(agent)!r}: {error}") from None


def _draw(rng: Generators, indices: Indices, bound: int, dtype: Any) -> npt.NDArray[Any]:
    """Draw one integer from 0..bound-1 for each selected game."""
    if isinstance(rng, np.random.Generator):
        return rng.integers(0, bound, size=len(indices), dtype=dtype)
    return np.array([rng[i].integers(0, bound, size=1, dtype=dtype)[0] for i in indices.tolist()], dtype)


@jit
def _write_turns(games: StateArray, indices: Indices, seats: npt.NDArray[np.int8], turns: npt.NDArray[np.int8]) -> bool:
    """Write which seat is to move in each selected game, and return whether an opponent is to move in any of them.

    Seats are counted from the learner's: 0 is the learner. Finished games get 0, too.
    """
    is_waiting = False
    for place in range(len(indices)):
        game = games[indices[place]]
        turn = 0 if is_over(game) else (game.to_move - seats[indices[place]]) % game.num_players
        turns[place] = turn
        is_waiting |= turn != 0
    return is_waiting


@jit
def _write_outputs(
    games: StateArray,
    indices: Indices,
    seats: npt.NDArray[np.int8],
    illegal: npt.NDArray[np.bool_],
    reward: int,
    planes: npt.NDArray[np.int8],
    masks: npt.NDArray[np.int8],
    rewards: npt.NDArray[np.float32],
    terminated: npt.NDArray[np.bool_],
) -> None:
    """Write the learner's observations, masks and rewards of the selected games, and whether they have ended."""
    for index in indices:
        game, seat = games[index], seats[index]
        paid = np.empty(game.num_players, np.float32)
        write_observation(game, seat, planes[index])
        write_legal_mask(game, masks[index])
        terminated[index] = illegal[index] or is_over(game)
        rewards[index] = 0.0
        if illegal[index]:
            masks[index] = 0
            rewards[index] = ILLEGAL_REWARD
        elif terminated[index]:
            write_rewards(game, reward, paid)
            rewards[index] = paid[seat]
