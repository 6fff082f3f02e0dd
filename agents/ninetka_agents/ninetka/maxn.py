"""The computer player of Stefani et al. (2019): max^n search in the movement phase, placement rules before it.

Evaluation and placement rules: Stefani et al., "Modelling and implementation of 9tka game with MaxN algorithm",
TELKOMNIKA 2019. Search: Luckhardt and Irani, "An algorithmic solution of N-person games", AAAI 1986. For max^n to the
end of the game, see `ninetka_agents.ninetka.endings`.

The search returns the same move and values as a plain max^n search, also when children are equal, but visits few of its
nodes. Only a seat's own moves can raise its evaluation; the other seats can only take sections from it. So a child's
value for the mover is at most the evaluation right after the mover's slide, plus the maximum gain of the slides that
the mover may still make within the depth. Children are visited in descending order of this bound, until no remaining
child can be better.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, as_positions, check_threads, game_streams
from ninetka_env.core.chance import Streams, draw_below, draw_bit
from ninetka_env.core.game import check_game
from ninetka_env.core.jit import frozen, jit, lowest, popcount
from ninetka_env.core.options import check_count
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import Record, Records
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
    GAME,
    MOVEMENT,
    NEUTRAL,
    PLACEMENT,
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
CROWDING = frozen([30 - 15 * v if v <= 4 else -15 for v in range(10)], np.int64)
"""(10,) int64: y(v) of the paper, formula (5), for v stones of a seat in a section."""
INNER_CORNERS = frozen([12, 20, 100, 108], np.int64)
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

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_positions(games, Game.name)
        actions = np.empty(len(games), np.int64)
        threads = min(self._threads, len(games))
        run_shared(_act, threads, games, game_streams(games, rng), self._depth, self._random_ties, actions)
        return actions


def evaluate(game: Game) -> Values:
    """Return the paper's evaluation `eva` of a position for each seat, (n,) int64.

    eva(m) = sum over sections k of 100 c(m, k) + y(v(m, k)), plus 90 (r(m) - q(m)). c(m, k) is 1 if seat m owns section
    k, else 0. v(m, k) is the number of its stones in k. r(m) and q(m) are the numbers of opponents' and own edge stones
    that stones of m block.
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


_LOWEST_FIRST = frozen(np.arange(63, 63 - NUM_SLOTS, -1), np.int64)
"""(36,) int64: priorities of slots. The highest is chosen among equal children; here this is the lowest square."""


NODE = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("game", GAME),
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
def _search_first(games: Records, depth: int, priority: Values, nodes: Records) -> int:
    return _search(games[0], depth, priority, nodes)


@jit
def _search(game: Record, depth: int, priority: Values, nodes: Records) -> int:
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
            _take_back(nodes[level], nodes[level + 1], priority)
        else:
            break
    return PASS if must_pass(game) else int(SLOT_SQUARE[root.best_slot])


@jit
def _enter(node: Record, depth: int, priority: Values) -> None:
    """Start a node: set its value to the evaluation at depth 0 or the end of the game, else bound its children."""
    node.slots, node.best_slot, node.best_key = 0, -1, -(1 << 60)
    if depth == 0 or is_over(node.game):
        node.value = node.eva
        return
    node.slots = legal_bits(node.game)
    base = node.eva[node.game.to_move] + _later_gain(node.game, depth)
    bits = node.slots
    while bits:
        slot = lowest(bits)
        node.keys[slot] = (base + slide_gain(node.game, slot)) * 64 + priority[slot]
        bits &= bits - 1


@jit
def _next_child(node: Record) -> int:
    """Return the unvisited child with the highest bound, or -1 if no child left can beat the best one."""
    best, key, bits = -1, node.best_key, node.slots
    while bits:
        slot = lowest(bits)
        if node.keys[slot] > key:
            best, key = slot, node.keys[slot]
        bits &= bits - 1
    return best


@jit
def _descend(node: Record, child: Record, slot: int) -> None:
    """Write the node after sliding the stone of `slot` into `child`."""
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
def _take_back(node: Record, child: Record, priority: Values) -> None:
    """Back up the child's values if they are the best for the mover so far."""
    key = child.value[node.game.to_move] * 64 + priority[node.tried]
    if key > node.best_key:
        node.best_key, node.best_slot = key, node.tried
        node.value = child.value


@jit
def slide_gain(game: Record, slot: int) -> int:
    """Return the change in the mover's evaluation if it slides the stone of `slot`."""
    seat, square = game.to_move, landing_square(game, slot)
    section = SECTION[square]
    count, rivals = game.counts[seat, section], 0
    for other in range(game.num_players):
        if other != seat:
            rivals = max(rivals, game.counts[other, section])
    conquers = count == rivals  # with more stones the mover owns it already, with fewer one stone is not enough
    blocked = ADJACENT_SLOTS[square] & movable_slots(game) & ~(1 << slot)
    blocked_own = popcount(blocked & game.movable[seat])
    blocks = popcount(blocked) - 2 * blocked_own
    return CONQUEST * conquers + CROWDING[count + 1] - CROWDING[count] + BLOCK * blocks


@jit
def _later_gain(game: Record, depth: int) -> int:
    """Return an upper bound of the mover's gain by slides after its next one within `depth` plies."""
    slides = _later_slides(game, depth)
    if slides == 0:
        return 0
    blocks, crowds = 1, 0
    for square in INNER_CORNERS:  # only on these squares a stone can block two stones
        if game.board[square] == 0 and popcount(ADJACENT_SLOTS[square] & movable_slots(game)) == 2:
            blocks = 2
    for section in range(NUM_SECTIONS):
        crowds |= game.counts[game.to_move, section] + slides > 3
    return slides * (CONQUEST + BLOCK * blocks + (15 if crowds else -15))


@jit
def _later_slides(game: Record, depth: int) -> int:
    """Return an upper bound of the mover's slides after its next one within `depth` plies.

    Seats move in turn, and a seat is passed over only if it has no movable stones. Each slide blocks at most two stones
    and uses up one stone of the seat that slides. Until a seat is passed over, every seat has slid as often as the turn
    has returned to the mover. So a seat with more than 2 * ply + own_slides stones cannot be passed over at `ply`.
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
def _evaluate_first(games: Records, values: Values) -> None:
    write_evaluation(games[0], values[0])


@jit
def write_evaluation(game: Record, values: Values) -> None:
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
            stone = game.board[SLOT_SQUARE[lowest(edge)]] - 1
            if stone >= 0:
                values[blocker] += BLOCK if stone != blocker else -BLOCK
            edge &= edge - 1


def _partner_slots() -> list[int]:
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


PARTNER_SLOTS = frozen(_partner_slots(), np.int64)
"""(36,) int64: per slot, a bit set of the slots that conflict with it: the other end of the line, and the corner pairs.
The computer player does not place on both (conditions 1 to 3 of the paper's placement rules)."""


@jit
def placement_bits(game: Record) -> int:
    """Return, as bits, the free slots that break no placement condition of the paper, or all free slots if all do."""
    allowed = game.open
    own = game.movable[game.to_move]  # in the placement phase every stone on the edge is movable
    while own:
        allowed &= ~PARTNER_SLOTS[lowest(own)]
        own &= own - 1
    return allowed if allowed else game.open


@jit
def _choose(game: Record, depth: int, random_ties: bool, streams: Streams, index: int, nodes: Records) -> int:
    """Choose an action for `game`, drawing from stream `index`."""
    if game.phase == NEUTRAL:
        return bit_action(game, draw_bit(streams, index, legal_bits(game)))
    if game.phase == PLACEMENT:
        return bit_action(game, draw_bit(streams, index, placement_bits(game)))
    priority = _LOWEST_FIRST.copy()
    if random_ties:
        for last in range(NUM_SLOTS - 1, 0, -1):  # Fisher and Yates
            other = draw_below(streams, index, last + 1)
            priority[last], priority[other] = priority[other], priority[last]
    return _search(game, depth, priority, nodes)


@jit
def _act(control: Control, games: Records, streams: Streams, depth: int, random_ties: bool, actions: Actions) -> None:
    """Choose actions for the games that this thread claims."""
    nodes = np.zeros((depth if depth else MAX_PLAYERS + EXTRA_DEPTH) + 1, NODE)
    while True:
        index, stop = claim(control, 0, len(games), 1)
        if index == stop:
            return
        plies = depth if depth else int(games[index].num_players) + EXTRA_DEPTH
        actions[index] = _choose(games[index], plies, random_ties, streams, index, nodes)
