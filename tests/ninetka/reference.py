"""A slow, simple implementation of 9tka and of the MaxN baseline, for comparisons with the fast implementation.

It stores the board, the seat to move and the phase, and computes everything else from the board each time. Texts in
quotation marks quote the rules (`rules.md`) and the description of the baseline (`maxn.md`), which count seats,
sections and phases from 1; here all three count from 0.
"""

from __future__ import annotations

Square = tuple[int, int]

EMPTY, NEUTRAL = 0, 5  # the other cell codes are stones: seat + 1
PASS = 121
NEUTRALS, PLACEMENT, MOVEMENT = 0, 1, 2  # the phases
SQUARES = [(row, col) for row in range(11) for col in range(11)]


def index_of(square: Square) -> int:
    """'Square index = 11*row + col.'"""
    return 11 * square[0] + square[1]


def is_inner(square: Square) -> bool:
    """'Inner region: rows and cols 1..9 (81 squares).'"""
    return 1 <= square[0] <= 9 and 1 <= square[1] <= 9


def is_edge(square: Square) -> bool:
    """'Edge squares: the 36 non-corner squares of rows 0, 10 and cols 0, 10.'"""
    return (square[0] in (0, 10)) != (square[1] in (0, 10))


def section_of(square: Square) -> int:
    """'k = 3*((row-1)//3) + (col-1)//3 + 1, 1..9 in reading order', less one: 0..8 here."""
    return 3 * ((square[0] - 1) // 3) + (square[1] - 1) // 3


def may_hold_neutral(square: Square) -> bool:
    """'A neutral may not stand on the outer ring: only rows 2..8 and cols 2..8.'"""
    return 2 <= square[0] <= 8 and 2 <= square[1] <= 8


def direction_inward(edge: Square) -> Square:
    """'Straight into the board along its row or column': (down, right) from an edge square."""
    row, col = edge
    if row in (0, 10):
        return (1, 0) if row == 0 else (-1, 0)
    return (0, 1) if col == 0 else (0, -1)


def next_inward(edge: Square) -> Square:
    """'The inner square next to it.'"""
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
        """'One legal square per section; the game then starts in phase 2 with seat 1.'

        For a new game only; returns the game itself.
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
        """The squares of a seat's stones 'that still stand on the edge'."""
        return [sq for sq in SQUARES if is_edge(sq) and self.cell(sq) == seat + 1]

    def movable_stones(self, seat: int) -> list[Square]:
        """'A stone is blocked when the inner square next to it is occupied', else it can move."""
        return [sq for sq in self.edge_stones(seat) if self.cell(next_inward(sq)) == EMPTY]

    def is_over(self) -> bool:
        """'The game ends when nobody can move.'"""
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
        # 'Passing is never legal while a stone can move.'
        return [index_of(square) for square in self.movable_stones(self.to_move)] or [PASS]

    def neutral_squares(self) -> list[Square]:
        """'Place one neutral stone until every section holds exactly one (9 placements).'"""
        taken = [section_of(square) for square in SQUARES if self.cell(square) == NEUTRAL]
        return [sq for sq in SQUARES if may_hold_neutral(sq) and section_of(sq) not in taken]

    def placement_squares(self) -> list[Square]:
        """'Place one of their stones on any empty edge square until all 36 are occupied.'"""
        return [sq for sq in SQUARES if is_edge(sq) and self.cell(sq) == EMPTY]

    def landing_square(self, edge: Square) -> Square:
        """'Over empty squares, until the next square is occupied or is the opposite edge.

        It stops on the last empty inner square (a stone never stops on an edge square).'
        """
        down, right = direction_inward(edge)
        here, ahead = edge, next_inward(edge)
        while is_inner(ahead) and self.cell(ahead) == EMPTY:
            here, ahead = ahead, (ahead[0] + down, ahead[1] + right)
        return here

    def play(self, action: int) -> None:
        """Play one action for the seat to move. 'Seats move in turn: 1, 2, .., n, 1, ..'"""
        if action not in self.legal_actions():
            raise ValueError(f"illegal action {action!r} for seat {self.to_move}")
        if action != PASS:
            self.change_board(divmod(action, 11))
        self.to_move = (self.to_move + 1) % self.num_players
        self.end_phase_if_complete()
        self.play_forced_passes()

    def change_board(self, square: Square) -> None:
        """Place a neutral stone or a stone, or slide a stone, 'which stays there'."""
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
        """'"restart" (seat 1 opens each phase) or "continue" (turns simply go on).'"""
        neutrals_done = self.phase == NEUTRALS and not self.neutral_squares()
        placement_done = self.phase == PLACEMENT and not self.placement_squares()
        if neutrals_done or placement_done:
            self.phase += 1
            if self.turn_order == "restart":
                self.to_move = 0

    def play_forced_passes(self) -> None:
        """'Forced passes are played by the environment and reported'; none after the end."""
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
        """Return the seat that owns each section: 'strictly more stones in it than every other player'.

        'Ties conquer for nobody; neutrals count for nobody; an empty section is nobody's': -1.
        """
        owners = []
        for stones in zip(*self.section_counts(), strict=True):  # of each seat, in one section
            most = max(stones)
            owners.append(stones.index(most) if stones.count(most) == 1 else -1)
        return owners

    def scores(self) -> list[int]:
        """'Score = sections conquered.'"""
        return [self.owners().count(seat) for seat in range(self.num_players)]

    def winner(self) -> int:
        """'Highest score wins; among those tied, the one latest in seat order wins.'

        Before the end: the seat that would win if the game ended here.
        """
        scores = self.scores()
        return max(seat for seat in range(self.num_players) if scores[seat] == max(scores))


def crowding_value(stones: int) -> int:
    """'y(v) = 30 - 15*v for 0 <= v <= 4, and -15 for v >= 5.'"""
    return 30 - 15 * stones if stones <= 4 else -15


def count_blocked(game: ReferenceGame, blocker: int, owner: int) -> int:
    """The owner's stones where 'the inner square next to them holds' the blocker's stone."""
    return sum(game.cell(next_inward(sq)) == blocker + 1 for sq in game.edge_stones(owner))


def evaluate(game: ReferenceGame) -> list[int]:
    """'eva(m) = sum over the sections k of: 100*c(m,k) + y(v(m,k)), plus 90*(r(m) - q(m)).'"""
    values = []
    for seat, counts in enumerate(game.section_counts()):
        others = [other for other in range(game.num_players) if other != seat]
        r = sum(count_blocked(game, blocker=seat, owner=other) for other in others)
        q = count_blocked(game, blocker=seat, owner=seat)
        y = sum(crowding_value(stones) for stones in counts)
        values.append(100 * game.scores()[seat] + y + 90 * (r - q))
    return values


def max_n(game: ReferenceGame, depth: int) -> tuple[int | None, list[int]]:
    """Return the best action and its values: 'the child that maximises the mover's own component'.

    'Evaluated with eva at depth 0 or where the game is over' (there the action is None). 'Forced
    passes cost no depth; equal children: the lowest square index wins.' The baseline's own depth
    is 'n + 3 plies'.
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
    return max(results, key=lambda result: result[1][game.to_move])  # the first of equal ones


CORNER_PAIRS = [
    {(1, 0), (0, 9)}, {(1, 10), (0, 1)}, {(9, 0), (10, 9)}, {(9, 10), (10, 1)},
    {(0, 1), (9, 0)}, {(10, 1), (1, 0)}, {(0, 9), (9, 10)}, {(10, 9), (1, 10)},
]  # fmt: skip


def opposite_end(edge: Square) -> Square:
    """'The other end of the same row or column.'"""
    row, col = edge
    return (10 - row, col) if row in (0, 10) else (row, 10 - col)


def corner_partners(edge: Square) -> list[Square]:
    """'The square's partner in one of these eight pairs': two next to a corner, else none."""
    return [other for pair in CORNER_PAIRS if edge in pair for other in pair if other != edge]


def placement_candidates(game: ReferenceGame) -> set[int]:
    """Return the empty edge squares that break none of the conditions 1 to 3 for the seat to move.

    A square breaks a condition if the square to check 'holds a stone of its own'. 'If every empty square breaks one',
    there are no candidates, and the baseline takes the last square drawn.
    """
    if game.phase != PLACEMENT:
        raise ValueError("these conditions are for the placement phase only")
    candidates = set()
    for square in game.placement_squares():
        to_check = [opposite_end(square), *corner_partners(square)]
        if all(game.cell(other) != game.to_move + 1 for other in to_check):
            candidates.add(index_of(square))
    return candidates
