"""A slow, simple implementation of 9tka and of the MaxN baseline, for comparisons with the fast implementation.

It stores the board, the seat to move and the phase, and computes everything else from the board each time. It shares no
code with the fast implementation. Squares are (row, column); seats, sections and phases count from 0.
"""

from __future__ import annotations

Square = tuple[int, int]

EMPTY, NEUTRAL = 0, 5  # the other cell codes are stones: seat + 1
PASS = 121
NEUTRALS, PLACEMENT, MOVEMENT = 0, 1, 2  # the phases
SQUARES = [(row, col) for row in range(11) for col in range(11)]


def index_of(square: Square) -> int:
    """Return the index of a square: 11 * row + column."""
    return 11 * square[0] + square[1]


def is_inner(square: Square) -> bool:
    """Return whether a square is one of the 81 inner squares: rows and columns 1..9."""
    return 1 <= square[0] <= 9 and 1 <= square[1] <= 9


def is_edge(square: Square) -> bool:
    """Return whether a square is one of the 36 edge squares: rows and columns 0 and 10, without the corners."""
    return (square[0] in (0, 10)) != (square[1] in (0, 10))


def section_of(square: Square) -> int:
    """Return the section of an inner square: 0..8 in reading order."""
    return 3 * ((square[0] - 1) // 3) + (square[1] - 1) // 3


def may_hold_neutral(square: Square) -> bool:
    """Return whether a neutral stone may be placed on a square: rows and columns 2..8."""
    return 2 <= square[0] <= 8 and 2 <= square[1] <= 8


def direction_inward(edge: Square) -> Square:
    """Return the step (down, right) from an edge square straight into the board."""
    row, col = edge
    if row in (0, 10):
        return (1, 0) if row == 0 else (-1, 0)
    return (0, 1) if col == 0 else (0, -1)


def next_inward(edge: Square) -> Square:
    """Return the inner square next to an edge square."""
    down, right = direction_inward(edge)
    return edge[0] + down, edge[1] + right


class ReferenceGame:
    """One game of 9tka. Tests may set `board`, `to_move` and `phase` to start from any position.

    When the game is over, `to_move` is the seat after the seat that moved last.
    """

    def __init__(self, num_players: int, turn_order: str = "restart", auto_pass: bool = True) -> None:
        if num_players not in (2, 3, 4) or turn_order not in ("restart", "continue"):
            raise ValueError(f"no such game: {num_players!r} players, turn order {turn_order!r}")
        self.num_players = num_players
        self.turn_order = turn_order
        self.auto_pass = auto_pass
        self.board: list[list[int]] = [[EMPTY] * 11 for _ in range(11)]
        self.to_move = 0
        self.phase = NEUTRALS
        self.passed: list[int] = []  # the seats passed over after the last action, in turn order

    def with_neutrals(self, squares: list[int]) -> ReferenceGame:
        """Place all neutral stones in a new game, start the placement phase with seat 0, and return this game.

        Args:
            squares: the indices of nine squares, one in each section, on which a neutral stone may be placed.
        """
        chosen = [divmod(index, 11) for index in squares]
        one_each = sorted(section_of(square) for square in chosen) == list(range(9))
        if not one_each or not all(may_hold_neutral(square) for square in chosen):
            raise ValueError(f"not one legal neutral square per section: {squares!r}")
        if any(self.cell(square) != EMPTY for square in SQUARES):
            raise ValueError("the neutrals can only be given to a new game")
        for row, col in chosen:
            self.board[row][col] = NEUTRAL
        self.phase = PLACEMENT
        return self

    def copy(self) -> ReferenceGame:
        """Return an independent copy."""
        other = ReferenceGame(self.num_players, self.turn_order, self.auto_pass)
        other.board = [list(row) for row in self.board]
        other.to_move, other.phase, other.passed = self.to_move, self.phase, list(self.passed)
        return other

    def cell(self, square: Square) -> int:
        """Return the cell code of a square."""
        return self.board[square[0]][square[1]]

    def edge_stones(self, seat: int) -> list[Square]:
        """Return the squares of a seat's stones on the edge."""
        return [sq for sq in SQUARES if is_edge(sq) and self.cell(sq) == seat + 1]

    def movable_stones(self, seat: int) -> list[Square]:
        """Return the squares of a seat's stones that can slide: the inner square next to the stone is empty."""
        return [sq for sq in self.edge_stones(seat) if self.cell(next_inward(sq)) == EMPTY]

    def is_over(self) -> bool:
        """Return whether the game is over: no seat can slide a stone."""
        seats = range(self.num_players)
        return self.phase == MOVEMENT and not any(self.movable_stones(seat) for seat in seats)

    def legal_actions(self) -> list[int]:
        """Return the legal actions of the seat to move, in ascending order."""
        if self.is_over():
            return []
        if self.phase == NEUTRALS:
            return [index_of(square) for square in self.neutral_squares()]
        if self.phase == PLACEMENT:
            return [index_of(square) for square in self.placement_squares()]
        # a pass is legal only if the seat cannot slide a stone
        return [index_of(square) for square in self.movable_stones(self.to_move)] or [PASS]

    def neutral_squares(self) -> list[Square]:
        """Return the squares where a neutral stone may be placed, in all sections that have no neutral stone."""
        taken = [section_of(square) for square in SQUARES if self.cell(square) == NEUTRAL]
        return [sq for sq in SQUARES if may_hold_neutral(sq) and section_of(sq) not in taken]

    def placement_squares(self) -> list[Square]:
        """Return the empty edge squares."""
        return [sq for sq in SQUARES if is_edge(sq) and self.cell(sq) == EMPTY]

    def landing_square(self, edge: Square) -> Square:
        """Return the last inner square of a slide, which ends before an occupied square or the opposite edge.

        For a blocked stone, return its own edge square.
        """
        down, right = direction_inward(edge)
        here, ahead = edge, next_inward(edge)
        while is_inner(ahead) and self.cell(ahead) == EMPTY:
            here, ahead = ahead, (ahead[0] + down, ahead[1] + right)
        return here

    def play(self, action: int) -> None:
        """Play an action for the seat to move and pass the turn on; raise ValueError if the action is illegal."""
        if action not in self.legal_actions():
            raise ValueError(f"illegal action {action!r} for seat {self.to_move}")
        if action != PASS:
            self.change_board(divmod(action, 11))
        self.to_move = (self.to_move + 1) % self.num_players
        self.end_phase_if_complete()
        self.play_forced_passes()

    def change_board(self, square: Square) -> None:
        """Place a neutral stone, place a stone of the seat to move, or slide a stone, depending on the phase."""
        row, col = square
        if self.phase == NEUTRALS:
            self.board[row][col] = NEUTRAL
        elif self.phase == PLACEMENT:
            self.board[row][col] = self.to_move + 1
        else:
            end_row, end_col = self.landing_square(square)
            self.board[row][col] = EMPTY
            self.board[end_row][end_col] = self.to_move + 1

    def end_phase_if_complete(self) -> None:
        """Start the next phase if the current phase is complete. With turn order "restart", seat 0 starts the phase."""
        neutrals_done = self.phase == NEUTRALS and not self.neutral_squares()
        placement_done = self.phase == PLACEMENT and not self.placement_squares()
        if neutrals_done or placement_done:
            self.phase += 1
            if self.turn_order == "restart":
                self.to_move = 0

    def play_forced_passes(self) -> None:
        """With `auto_pass`, skip the seats that cannot slide and list them in `passed`. After the end, skip no seat."""
        self.passed = []
        if not self.auto_pass or self.phase != MOVEMENT or self.is_over():
            return
        while not self.movable_stones(self.to_move):
            self.passed.append(self.to_move)
            self.to_move = (self.to_move + 1) % self.num_players

    def section_counts(self) -> list[list[int]]:
        """Return the numbers of stones in each section: one list of nine numbers per seat."""
        counts = [[0] * 9 for _ in range(self.num_players)]
        for square in SQUARES:
            if is_inner(square) and self.cell(square) not in (EMPTY, NEUTRAL):
                counts[self.cell(square) - 1][section_of(square)] += 1
        return counts

    def owners(self) -> list[int]:
        """Return the owner of each section: the seat with more stones in it than every other seat, -1 if there is none.

        Neutral stones do not count.
        """
        owners = []
        for stones in zip(*self.section_counts(), strict=True):  # of each seat, in one section
            most = max(stones)
            owners.append(stones.index(most) if stones.count(most) == 1 else -1)
        return owners

    def scores(self) -> list[int]:
        """Return the number of sections that each seat owns."""
        return [self.owners().count(seat) for seat in range(self.num_players)]

    def winner(self) -> int:
        """Return the seat with the highest score; of tied seats, the last in seat order.

        Before the end, this is the seat that would win if the game ended now.
        """
        scores = self.scores()
        return max(seat for seat in range(self.num_players) if scores[seat] == max(scores))


def crowding_value(stones: int) -> int:
    """Return the term of the evaluation for a seat's stones in a section: 30 - 15 * stones, or -15 for 5 or more."""
    return 30 - 15 * stones if stones <= 4 else -15


def count_blocked(game: ReferenceGame, blocker: int, owner: int) -> int:
    """Return the number of the owner's edge stones whose next inner square holds a stone of the blocker."""
    return sum(game.cell(next_inward(sq)) == blocker + 1 for sq in game.edge_stones(owner))


def evaluate(game: ReferenceGame) -> list[int]:
    """Return the evaluation of Stefani et al. (2019) for each seat: 100 * score + sum of y + 90 * (r - q).

    y: the `crowding_value` of each section. r: the other seats' edge stones that this seat's stones block. q: this
    seat's own edge stones that its stones block.
    """
    values = []
    for seat, counts in enumerate(game.section_counts()):
        others = [other for other in range(game.num_players) if other != seat]
        r = sum(count_blocked(game, blocker=seat, owner=other) for other in others)
        q = count_blocked(game, blocker=seat, owner=seat)
        y = sum(crowding_value(stones) for stones in counts)
        values.append(100 * game.scores()[seat] + y + 90 * (r - q))
    return values


def max_n(game: ReferenceGame, depth: int) -> tuple[int | None, list[int]]:
    """Return the best action of a plain max^n search, and its values, one per seat.

    The mover chooses the child with the highest value for itself; of equal children, the lowest square index. At depth
    0 and at the end of the game, the action is None and the values are those of `evaluate`. A forced pass does not
    reduce the depth. The baseline searches n + 3 plies for n players.
    """
    if game.phase != MOVEMENT:
        raise ValueError("the baseline searches in the movement phase only")
    if depth == 0 or game.is_over():
        return None, evaluate(game)
    results = []
    for action in game.legal_actions():
        child = game.copy()
        child.play(action)
        _, values = max_n(child, depth if action == PASS else depth - 1)
        results.append((action, values))
    return max(results, key=lambda result: result[1][game.to_move])  # the first of equal children


CORNER_PAIRS = [
    {(1, 0), (0, 9)}, {(1, 10), (0, 1)}, {(9, 0), (10, 9)}, {(9, 10), (10, 1)},
    {(0, 1), (9, 0)}, {(10, 1), (1, 0)}, {(0, 9), (9, 10)}, {(10, 9), (1, 10)},
]  # fmt: skip


def opposite_end(edge: Square) -> Square:
    """Return the edge square at the other end of the same row or column."""
    row, col = edge
    return (10 - row, col) if row in (0, 10) else (row, 10 - col)


def corner_partners(edge: Square) -> list[Square]:
    """Return the partners of a square in `CORNER_PAIRS`: two for a square next to a corner, otherwise none."""
    return [other for pair in CORNER_PAIRS if edge in pair for other in pair if other != edge]


def placement_candidates(game: ReferenceGame) -> set[int]:
    """Return the empty edge squares that break none of the paper's conditions 1 to 3 for the seat to move.

    A square breaks a condition if a stone of the seat is on the `opposite_end` (conditions 1 and 2) or on one of the
    `corner_partners` (condition 3). If there are no candidates, the baseline places on the last square that it drew.
    """
    if game.phase != PLACEMENT:
        raise ValueError("these conditions are for the placement phase only")
    candidates = set()
    for square in game.placement_squares():
        to_check = [opposite_end(square), *corner_partners(square)]
        if all(game.cell(other) != game.to_move + 1 for other in to_check):
            candidates.add(index_of(square))
    return candidates
