// What the page must know of the board to draw it. Nothing is decided here: the server says what is legal.

export const SIZE = 11;
export const PASS = 121;
export const NEUTRAL = 5;
export const DRAWN = -1; // stands for the winner of a drawn game; null while nobody has won
export const COLOURS = ["yellow", "blue", "orange", "green"];
export const SHAPES = ["disc", "triangle", "square", "diamond"];

export const capital = (text) => text[0].toUpperCase() + text.slice(1);
export const rowOf = (square) => Math.floor(square / SIZE);
export const columnOf = (square) => square % SIZE;
export const isEdge = (square) => (rowOf(square) % 10 === 0) !== (columnOf(square) % 10 === 0);
export const isInner = (square) => rowOf(square) % 10 !== 0 && columnOf(square) % 10 !== 0;
export const sectionOf = (square) => 3 * Math.floor((rowOf(square) - 1) / 3) + Math.floor((columnOf(square) - 1) / 3);

/** Name a square as people do: A1 is the bottom left. */
export const squareName = (square) => (square === PASS ? "pass" : "ABCDEFGHIJK"[columnOf(square)] + (SIZE - rowOf(square)));

/** Return the inner square that an edge square's stone enters first. */
export function entryOf(square) {
  const row = rowOf(square), column = columnOf(square);
  return square + (row === 0 ? SIZE : row === 10 ? -SIZE : column === 0 ? 1 : -1);
}

/** Tell whether an edge stone can never slide: something stands right before it. */
export const isBlocked = (board, square) => board[entryOf(square)] !== 0;

/** Tell in which phase a move was made. */
export const phaseOf = (move) => (move.owners ? "movement" : isInner(move.action) ? "neutral" : "placement");

/** Return the position after `ply` moves of a table's state: what is needed to draw it. */
export function positionAt(state, ply) {
  const board = [...state.start.board];
  let owners = state.start.owners;
  for (const move of state.moves.slice(0, ply)) {
    if (move.owners) owners = move.owners;
    if (move.action === PASS) continue;
    const phase = phaseOf(move);
    if (phase === "movement") board[move.action] = 0;
    board[move.to] = phase === "neutral" ? NEUTRAL : move.seat + 1;
  }
  const last = ply > 0 ? state.moves[ply - 1] : null;
  const live = ply === state.moves.length;
  const next = state.moves[ply];
  const toMove = live ? state.to_move : next.seat;
  const phase = live ? state.phase : phaseOf(next);
  return { board, owners, last, live, toMove, phase, ply, over: live && state.over };
}

/** Count the sections that each seat owns. */
export const scoresOf = (owners, players) => Array.from({ length: players }, (_, seat) => owners.filter((o) => o === seat).length);

/** Name a move: `C9`, or `A5–D5` for a slide. */
export function moveName(move) {
  return move.to === move.action ? squareName(move.action) : `${squareName(move.action)}–${squareName(move.to)}`;
}

/** Say how many stones a seat still has to place, or can slide. */
export function stonesLeft(position, seat, players) {
  const edge = [...position.board.keys()].filter((square) => isEdge(square) && position.board[square] === seat + 1);
  return {
    toPlace: 36 / players - edge.length,
    movable: edge.filter((square) => !isBlocked(position.board, square)).length,
  };
}

/** The name of an agent as people say it. */
export function agentName(spec) {
  const [name, option] = spec.split(":");
  const value = option ? Number(option.split("=")[1]).toLocaleString("en") : "";
  if (name === "maxn") return value ? `MaxN, ${value} plies` : "MaxN";
  if (name === "mcts") return `Tree search, ${value || "1,000"}`;
  if (name === "net") return value ? `Network + search, ${value}` : "Network";
  return capital(name);
}
