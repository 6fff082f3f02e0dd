"""The computer player of Stefani et al. (2019): placement rules, then max^n search in the movement phase.

Evaluation and placement rules: Stefani et al., "Modelling and implementation of 9tka game with MaxN algorithm",
TELKOMNIKA 2019. Search: Luckhardt and Irani, "An algorithmic solution of N-person games", AAAI 1986. For max^n to the
end of the game, see `ninetka_agents.ninetka.exact_maxn`.

The search returns the same move and values as a plain max^n search, also when children are equal, but visits few of its
nodes. Only a seat's own moves can raise its evaluation; the other seats can only take sections from it. So a child's
value for the mover is at most the evaluation right after the mover's slide, plus the maximum gain of the slides that
the mover may still make within the depth. Children are visited in descending order of this bound, until no remaining
child can be better.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, as_unfinished_states, check_threads, game_streams
from ninetka_env.core.game import check_game
from ninetka_env.core.jit import jit, lowest_bit, popcount, readonly_array
from ninetka_env.core.options import check_count
from ninetka_env.core.random_streams import Streams, draw_below, draw_set_bit
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import State, StateArray
from ninetka_env.games.ninetka.choices import prepare_root
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import (
    ADJACENT_SLOTS,
    INNER,
    MAX_PLAYERS,
    NUM_SECTIONS,
    NUM_SLOTS,
    NUM_SQUARES,
    PASS,
    SECTION,
    SIZE,
    SLOT_SQUARE,
    SQUARE_SLOT,
)
from ninetka_env.games.ninetka.rules import (
    MOVEMENT,
    PLACEMENT,
    STATE_DTYPE,
    bit_action,
    end_turn,
    is_over,
    landing_square,
    legal_bits,
    movable_slots,
    must_pass,
    next_seat,
    slide,
)

Values = npt.NDArray[np.int64]

CONQUEST, BLOCK = 100, 90
CROWDING = readonly_array([30 - 15 * v if v <= 4 else -15 for v in range(10)], np.int64)
"""(10,) int64: y(v) of the paper, formula (5), for v stones of a seat in a section."""
INNER_CORNERS = readonly_array([12, 20, 100, 108], np.int64)
EXTRA_DEPTH = 3
"""The paper searches n + 3 plies."""


class MaxNAgent(Agent):
    """The paper's computer player, batched over games and threads."""

    def __init__(self, depth: int = 0, random_ties: bool = False, threads: int = 0) -> None:
        """Set up the search.

        Args:
            depth: plies to search; 0 for the paper's n + 3, with n players.
            random_ties: choose at random among equal children, instead of the lowest square.
            threads: maximum number of threads; 0 for one per core.

        Raises:
            ValueError: if depth or threads is negative.
        """
        self.name = "maxn"
        self._depth = min(depth if depth == 0 else check_count("depth", depth), NUM_SLOTS)
        self._random_ties = random_ties
        self._threads = check_threads(threads)

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_unfinished_states(games, Game.name)
        actions = np.empty(len(games), np.int64)
        threads = min(self._threads, len(games))
        run_shared(_act, threads, games, game_streams(games, rng), self._depth, self._random_ties, actions)
        return actions


def evaluate(game: Game) -> Values:
    """Return the paper's evaluation `eva` of a position for each seat, (n,) int64.

    eva(m) = sum over sections k of 100 c(m, k) + y(v(m, k)), plus 90 (r(m) - q(m)). c(m, k) is 1 if seat m owns section
    k, else 0. v(m, k) is the number of stones of m in k. Stones of m block r(m) edge stones of opponents and q(m) edge
    stones of m.
    """
    check_game(game, Game)
    values = np.zeros((1, MAX_PLAYERS), np.int64)
    _evaluate_first(game.records, values)
    return values[0, : game.num_players]


def search(game: Game, depth: int | None = None) -> tuple[int, Values]:
    """Search a position of the movement phase to `depth` plies, by default n + 3.

    Among actions with equal values, the one with the lowest square is chosen.

    Returns:
        The action for the seat to move (pass if it must), and the (n,) int64 values of the position.

    Raises:
        ValueError: if the game has ended or is not in its movement phase, or if the depth is below 1.
    """
    check_game(game, Game)
    if game.phase != MOVEMENT or game.is_over:
        state = "over" if game.is_over else f"in phase {game.phase.name}"
        raise ValueError(f"max^n searches the movement phase; this game is {state}")
    depth = game.num_players + EXTRA_DEPTH if depth is None else min(check_count("depth", depth), NUM_SLOTS)
    nodes = np.zeros(depth + 1, NODE)
    action = _search_first(game.records, depth, _LOWEST_FIRST, nodes)
    return int(action), nodes["value"][0, : game.num_players].copy()


_LOWEST_FIRST = readonly_array(np.arange(63, 63 - NUM_SLOTS, -1), np.int64)
"""(36,) int64: priorities of slots. The highest is chosen among equal children; here this is the lowest square."""


NODE = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("game", STATE_DTYPE),
                ("eva", np.int64, (MAX_PLAYERS,)),  # the evaluation of the current position
                ("value", np.int64, (MAX_PLAYERS,)),  # the values of the best child so far
                ("keys", np.int64, (NUM_SLOTS,)),  # per slot: 64 * bound of the child's value for the mover + priority
                ("slots", np.int64),  # bits of the children not visited yet
                ("tried", np.int64),  # the slot of the child being visited
                ("best_slot", np.int64),
                ("best_key", np.int64),
            ],
            align=True,
        ),
    )
)
"""A position on the current path of the search, one per level."""


@jit
def _search_first(games: StateArray, depth: int, priority: Values, nodes: StateArray) -> int:
    return _search(games[0], depth, priority, nodes)


@jit
def _search(game: State, depth: int, priority: Values, nodes: StateArray) -> int:
    """Search a game of the movement phase; write its values to `nodes[0].value` and return the action.

    This is a loop, because numba cannot safely load recursive functions from its cache.
    """
    root = nodes[0]
    root.game = game
    prepare_root(root.game)  # forced passes cost no depth
    write_evaluation(root.game, root.eva)
    level = 0
    _enter(root, depth, priority)
    while True:
        slot = _next_child(nodes[level])
        if slot >= 0:
            _descend(nodes[level], nodes[level + 1], slot)
            level += 1
            _enter(nodes[level], depth - level, priority)
        elif level > 0:
            level -= 1
            _back_up(nodes[level], nodes[level + 1], priority)
        else:
            break
    return PASS if must_pass(game) else int(SLOT_SQUARE[root.best_slot])


@jit
def _enter(node: State, depth: int, priority: Values) -> None:
    """Start a node: at depth 0 or the end of the game, evaluate it; otherwise bound the values of its children."""
    node.slots, node.best_slot, node.best_key = 0, -1, -(1 << 60)
    if depth == 0 or is_over(node.game):
        node.value = node.eva
        return
    node.slots = legal_bits(node.game)
    base = node.eva[node.game.to_move] + _max_later_gain(node.game, depth)
    bits = node.slots
    while bits:
        slot = lowest_bit(bits)
        node.keys[slot] = (base + slide_gain(node.game, slot)) * 64 + priority[slot]
        bits &= bits - 1


@jit
def _next_child(node: State) -> int:
    """Return the unvisited child with the highest bound, or -1 if no unvisited child can be better than the best."""
    best, key, bits = -1, node.best_key, node.slots
    while bits:
        slot = lowest_bit(bits)
        if node.keys[slot] > key:
            best, key = slot, node.keys[slot]
        bits &= bits - 1
    return best


@jit
def _descend(node: State, child: State, slot: int) -> None:
    """Slide the stone of `slot`; write the new position and its evaluation to `child`."""
    seat = node.game.to_move
    node.slots &= ~(1 << slot)
    node.tried = slot
    child.game = node.game
    child.eva = node.eva
    child.eva[seat] += slide_gain(node.game, slot)
    slide(child.game, slot)
    for other in range(node.game.num_players):
        if other != seat and child.game.owned[other] != node.game.owned[other]:
            child.eva[other] -= CONQUEST
    end_turn(child.game)


@jit
def _back_up(node: State, child: State, priority: Values) -> None:
    """Back up the child's values if they are the best for the mover so far."""
    key = child.value[node.game.to_move] * 64 + priority[node.tried]
    if key > node.best_key:
        node.best_key, node.best_slot = key, node.tried
        node.value = child.value


@jit
def slide_gain(game: State, slot: int) -> int:
    """Return the change in the mover's evaluation if it slides the stone of `slot`."""
    seat, square = game.to_move, landing_square(game, slot)
    section = SECTION[square]
    count, rivals = game.counts[seat, section], 0
    for other in range(game.num_players):
        if other != seat:
            rivals = max(rivals, game.counts[other, section])
    conquers = count == rivals  # with more stones the mover already owns it; with fewer, one stone is not enough
    blocked = ADJACENT_SLOTS[square] & movable_slots(game) & ~(1 << slot)
    blocked_own = popcount(blocked & game.movable[seat])
    blocks = popcount(blocked) - 2 * blocked_own
    return CONQUEST * conquers + CROWDING[count + 1] - CROWDING[count] + BLOCK * blocks


@jit
def _max_later_gain(game: State, depth: int) -> int:
    """Return an upper bound of the mover's gain within `depth` plies, without the gain of its next slide."""
    slides = _max_later_slides(game, depth)
    if slides == 0:
        return 0
    blocks, crowds = 1, 0
    for square in INNER_CORNERS:  # a stone can block two stones only on these squares
        if game.board[square] == 0 and popcount(ADJACENT_SLOTS[square] & movable_slots(game)) == 2:
            blocks = 2
    for section in range(NUM_SECTIONS):
        crowds |= game.counts[game.to_move, section] + slides > 3
    return slides * (CONQUEST + BLOCK * blocks + (15 if crowds else -15))


@jit
def _max_later_slides(game: State, depth: int) -> int:
    """Return an upper bound of the number of the mover's slides within `depth` plies, without its next slide.

    Seats move in turn, and a seat is skipped only if it has no movable stones. A seat loses movable stones in two ways:
    each slide of any seat blocks at most two, and each slide of its own uses one. The seats slide equally often until
    one is skipped: `own_slides` times, the number of times that the turn has returned to the mover. So a seat with more
    than 2 * ply + own_slides movable stones cannot be skipped at `ply`.
    """
    seat = game.to_move
    own_slides, place = 0, seat
    for ply in range(1, depth):
        place = next_seat(game, place)
        while game.movable[place] == 0:
            place = next_seat(game, place)
        if place == seat:
            own_slides += 1
        elif popcount(game.movable[place]) <= 2 * ply + own_slides:
            own_slides += depth - ply  # the seat may have no stones left, so the mover may take all remaining plies
            break
    return min(own_slides, popcount(game.movable[seat]) - 1)


@jit
def _evaluate_first(games: StateArray, values: Values) -> None:
    write_evaluation(games[0], values[0])


@jit
def write_evaluation(game: State, values: Values) -> None:
    """Compute the paper's `eva` of each seat from the board and write it into `values`, (>= n,) int64."""
    values[:] = 0
    for seat in range(game.num_players):
        for section in range(NUM_SECTIONS):
            values[seat] += CROWDING[game.counts[seat, section]] + CONQUEST * (game.owned[seat] >> section & 1)
    for square in range(NUM_SQUARES):
        blocker = game.board[square] - 1
        if not INNER[square] or not 0 <= blocker < game.num_players:
            continue
        edge = ADJACENT_SLOTS[square]
        while edge:
            stone = game.board[SLOT_SQUARE[lowest_bit(edge)]] - 1
            if stone >= 0:
                values[blocker] += BLOCK if stone != blocker else -BLOCK
            edge &= edge - 1


def _conflicting_slots() -> list[int]:
    """Return, per slot, a bit set of the slots that conflict with it under the paper's placement conditions 1 to 3."""
    pairs = [(s, t) for s in range(NUM_SLOTS) for t in [_opposite(int(SLOT_SQUARE[s]))]]
    corner_pairs = (
        ((1, 0), (0, 9)), ((1, 10), (0, 1)), ((9, 0), (10, 9)), ((9, 10), (10, 1)),
        ((0, 1), (9, 0)), ((10, 1), (1, 0)), ((0, 9), (9, 10)), ((10, 9), (1, 10)),
    )  # fmt: skip
    for (row, col), (other_row, other_col) in corner_pairs:
        one, two = int(SQUARE_SLOT[SIZE * row + col]), int(SQUARE_SLOT[SIZE * other_row + other_col])
        pairs += [(one, two), (two, one)]
    return [sum(1 << t for s, t in pairs if s == slot) for slot in range(NUM_SLOTS)]


def _opposite(square: int) -> int:
    row, col = divmod(square, SIZE)
    row, col = (10 - row, col) if row in (0, 10) else (row, 10 - col)
    return int(SQUARE_SLOT[SIZE * row + col])


CONFLICTING_SLOTS = readonly_array(_conflicting_slots(), np.int64)
"""(36,) int64: per slot, a bit set of the slots that conflict with it (conditions 1 to 3 of the paper's placement
rules). The computer player avoids own stones on both of two conflicting slots. Two slots conflict if, on an empty
board, a stone that slides from one of them stops in front of the other: the two ends of a line, and eight pairs near
the corners."""


@jit
def placement_bits(game: State) -> int:
    """Return, as bits, the free slots that break no placement condition of the paper, or all free slots if all do."""
    allowed = game.open
    own = game.movable[game.to_move]  # in the placement phase every stone on the edge is movable
    while own:
        allowed &= ~CONFLICTING_SLOTS[lowest_bit(own)]
        own &= own - 1
    return allowed if allowed else game.open


@jit
def place(game: State, streams: Streams, index: int) -> int:
    """Choose an action before the movement phase by the paper's placement rules, drawing from stream `index`."""
    bits = placement_bits(game) if game.phase == PLACEMENT else legal_bits(game)
    return bit_action(game, draw_set_bit(streams, index, bits))


@jit
def _choose(game: State, depth: int, random_ties: bool, streams: Streams, index: int, nodes: StateArray) -> int:
    """Choose an action for `game`, drawing from stream `index`."""
    if game.phase != MOVEMENT:
        return place(game, streams, index)
    priority = _LOWEST_FIRST.copy()
    if random_ties:
        for last in range(NUM_SLOTS - 1, 0, -1):  # Fisher and Yates
            other = draw_below(streams, index, last + 1)
            priority[last], priority[other] = priority[other], priority[last]
    return _search(game, depth, priority, nodes)


@jit
def _act(
    control: Control, games: StateArray, streams: Streams, depth: int, random_ties: bool, actions: Actions
) -> None:
    """Choose actions for the games that this thread claims."""
    nodes = np.zeros((depth if depth else MAX_PLAYERS + EXTRA_DEPTH) + 1, NODE)
    while True:
        index, stop = claim(control, 0, len(games), 1)
        if index == stop:
            return
        plies = depth if depth else int(games[index].num_players) + EXTRA_DEPTH
        actions[index] = _choose(games[index], plies, random_ties, streams, index, nodes)
