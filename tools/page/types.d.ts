// The types of the page's JavaScript (ninetka_web/static), for the type check of `make lint`. Browsers never load this
// file. See ninetka_web/server/protocol.py for the messages to the server, ninetka_web/tables/views.py for the state of
// a table, and ninetka_web/games/adapter.py for the description of a game.

import type { Connection } from "../../ninetka_web/static/connection.js";

// Elements

type Handlers<E extends Element> = {
  [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name] & { readonly currentTarget: E }) => unknown;
};

/** Attributes of a new element: functions become listeners, `true` sets an empty attribute, `false` sets none. */
export interface Attributes<E extends Element> extends Handlers<E> {
  [name: string]: string | number | boolean | null | undefined | ((event: never) => unknown);
}

type SingleChild = Node | string | false | null | undefined;
/** Content of a new element; null, undefined and false are left out. */
export type Child = SingleChild | readonly SingleChild[];

// Games

/** The seat that won, -1 for a draw, null if the game is not over or the result is not known. */
export type Winner = number | null;

export type Options = Record<string, boolean | number | string>;

/** A row of the form for a new game with a few values to choose from; each value sets one or several options. */
export interface ChoicesRow {
  title: string;
  hidden: boolean;
  values: [Options, string][];
  name?: undefined;
}

/** A row of the form with a number. */
export interface NumberRow {
  title: string;
  hidden: boolean;
  name: string;
  minimum: number;
  maximum: number;
  step: number;
}

export type Row = ChoicesRow | NumberRow;

/** An agent that the form offers. */
export interface Agent {
  name: string;
  title: string;
  strengths: [number, string][];
  option: string;
  default_strength: number;
  /** The numbers of seats at which the agent plays; empty for any number. */
  seats: number[];
}

/** The server's description of a game. */
export interface Game {
  name: string;
  title: string;
  slogan: string;
  steps: [string, string][];
  rules: [string, string][];
  form: Row[];
  defaults: Options;
  seats: number[];
  colours: string[];
  agents: Agent[];
  opponent: string;
  engines: string[];
  stages: Record<string, string>;
  sgf: boolean;
}

// Tables

export interface Seat {
  kind: "agent" | "person" | "open";
  agent: string;
  name: string;
  keep: boolean;
}

/** A legal action: the cell that is clicked and the cell where the move ends, null if the action has no cell. */
export interface Action {
  action: number;
  name: string;
  cell: number | null;
  to: number | null;
}

export interface SeatAction extends Action {
  seat: number;
}

/** The first position of a game. */
export interface Start {
  cells: number[];
  scores: number[];
  seat_notes: string[];
}

/** A move of the game, with the cells that it changed. */
export interface Move {
  seat: number;
  action: number;
  name: string;
  move_text: string;
  stage: string;
  from: number | null;
  to: number | null;
  passed: number[];
  cells: [number, number][];
  scores: number[];
  seat_notes: string[];
}

/** A cell that can be clicked, its action, and the cell where the moved stone ends, if that is another cell. */
export type ClickTarget = [cell: number, action: number, landing?: number];

/** What the user can do in a position. */
export interface Choices {
  /** A plain number is both a cell and its action. */
  clickable: (number | ClickTarget)[];
  buttons: { action: number; label: string; key: string }[];
  /** The other cells that an action would change, by clicked cell. */
  preview_cells: Record<number, number[]>;
  /** The cell code of the stone that a click places. */
  preview_code: number;
  click_text: string;
}

/** A proposed score of a finished game; the board shows `dead` and `owners` in Go. */
export interface Proposal {
  scores: number[];
  winner: number;
  result: string;
  text: string;
  dead: number[];
  owners: number[];
}

export interface Clock {
  remaining: number[];
  running: number | null;
  main: number;
  increment: number;
}

/** The state of a table, sent after each change; `TableView.update` replaces the new moves by all moves. */
export interface State extends Choices {
  type: "state";
  table: string;
  game: string;
  config: Config;
  revision: number;
  round: number;
  seats: Seat[];
  to_move: number;
  stage: string;
  prompt: [mine: string, others: string];
  settling: boolean;
  proposal: Proposal | null;
  score_word: string;
  over: boolean;
  ended: boolean;
  outcome: string;
  event: { kind: "resigned" | "time" | "left"; seat: number } | null;
  winner: Winner;
  stated_result: string;
  resigned: number[];
  called_off: boolean;
  request: "" | "undo" | "rematch";
  undo: number;
  question: number;
  paused: boolean;
  agent_delay_ms: number;
  view_only: boolean;
  from_position: boolean;
  you: number[];
  asked: boolean;
  /** Seconds that users who have left have to come back, by seat. */
  away: Record<number, number>;
  clock: Clock | null;
  accepted: boolean;
  compiling: boolean;
  /** The number of the first move in `moves`. */
  from: number;
  moves: Move[];
  /** Only in a complete state, which replaces all earlier moves. */
  start?: Start;
}

/** Summary of a table for the list of the user's tables. */
export interface TableSummary {
  table: string;
  game: string;
  seat_names: string[];
  ply: number;
  over: boolean;
  winner: Winner;
}

// Messages of the server, except `State`

export interface Welcome {
  type: "welcome";
  token: string;
  games: Game[];
  tables: TableSummary[];
}

export interface ChatLine {
  name: string;
  text: string;
}

export interface Chat {
  type: "chat";
  lines: ChatLine[];
  new?: boolean;
}

/** The position that a message of the analysis is about. */
interface AnalysedPosition {
  ply: number;
  variation: number[] | null;
}

/** A move with the mover's win probability, the loss compared with the best move, and the certainty, each 0 to 1. */
export interface Candidate extends Action {
  chance: number;
  lost: number;
  sure: number;
}

export interface AnalysisMessage extends AnalysedPosition {
  type: "analysis";
  engine: string;
  simulations: number;
  /** Whether the search continues. */
  more: boolean;
  candidates: Candidate[];
  expected: SeatAction[];
  shares: number[];
}

/** Result of perfect play: the winner, and the winner after each move. */
export interface ExactMessage extends AnalysedPosition {
  type: "exact";
  winner: Winner;
  moves: (Action & { winner: Winner })[];
}

/** Game-specific insight into a position; only Go has `ownership`. */
export interface Insight {
  title?: string;
  text?: string;
  note?: string;
  variation?: SeatAction[];
  ownership?: number[];
}

export interface InsightMessage extends AnalysedPosition {
  type: "insight";
  insight: Insight;
}

export interface FailedMessage extends AnalysedPosition {
  type: "failed";
  engine: string;
  reason: string;
}

/** The tried moves and the choices after them. */
export interface Variation extends AnalysedPosition, Choices {
  type: "variation";
  variation: number[];
  moves: Move[];
  over: boolean;
  to_move: number;
}

export interface Hint extends AnalysedPosition, Candidate {
  type: "hint";
  wins: boolean;
}

/** The win probabilities of all seats in each position of the game; null where they are not known yet. */
export type Shares = (number[] | null)[];

export type AnalysisAnswer =
  | AnalysisMessage
  | ExactMessage
  | InsightMessage
  | FailedMessage
  | Variation
  | Hint
  | { type: "shares"; engine: string; shares: Shares }
  | { type: "winners"; winners: Winner[] };

export interface Compiling {
  type: "compiling";
  what: string;
  engine?: string;
}

/** The connection was lost: created by `Connection`, not sent by the server. */
export interface Lost {
  type: "lost";
}

/** Messages that `TableView.receive` handles. */
export type TableMessage = Chat | Compiling | Lost | AnalysisAnswer;

/** Answers to one message. */
export type Answer =
  | { type: "done"; id: number }
  | { type: "refused"; id: number; reason: string }
  | { type: "text"; id: number; text: string };

/** Messages of the server except answers. */
export type ServerMessage = Welcome | State | { type: "notice"; text: string } | TableMessage;

// Messages to the server

/** A message to the server; `Connection.send` adds the id. */
export type ClientMessage =
  | { type: "hello"; token?: string }
  | {
      type: "create";
      game: string;
      seats: string[];
      options?: Options;
      name?: string;
      keep?: boolean;
      clock?: number[] | null;
      position?: string;
    }
  | { type: "upload"; text: string }
  | { type: "join" | "discard"; table: string }
  | { type: "leave" | "undo" | "resign" | "rematch" | "personal_link" | "stop_analysis" }
  | { type: "sit"; seat: number; name: string; keep: boolean }
  | { type: "play"; ply: number; action: number }
  | { type: "answer"; question: number; accept: boolean }
  | { type: "accept" | "play_on"; question: number }
  | { type: "claim"; win: boolean }
  | { type: "chat"; text: string }
  | { type: "reclaim"; key: string }
  | { type: "pace"; delay_ms: number; paused: boolean }
  | { type: "analyse"; ply: number; engine: string; variation?: number[]; hint?: boolean }
  | { type: "record"; sgf: boolean }
  | { type: "position"; ply: number };

// The page

/** What the pages need from main.js. */
export interface App {
  connection: Connection;
  /** Send a message; if it is refused, show the reason. */
  send(message: ClientMessage): Promise<unknown>;
  readonly welcome: Welcome;
  game(name: string): Game;
  setGame(game: Game): void;
  navigate(path: string): void;
}

/** The settings for one game in the form for a new game. */
export interface GameSettings {
  options: Options;
  seats: string[];
  players: number;
}

/** The settings in the form for a new game, stored in the browser. */
export interface Form {
  game: string;
  name: string;
  clock: string;
  keep: boolean;
  more: boolean;
  games: Record<string, Partial<GameSettings>>;
}

// The board

/** The shown position. */
export interface Position {
  cells: number[];
  /** The move that led to the position. */
  last: Move | null;
  /** Whether the position is the newest one of the game. */
  isLatest: boolean;
  ply: number;
  over: boolean;
  toMove: number;
  scores: number[];
  notes: string[];
  proposal: Proposal | null;
  insight: Insight | null;
}

/** A move with its search result and its exact result. */
export interface RatedMove extends Action {
  chance?: number | undefined;
  lost: number;
  sure: number;
  /** Result of perfect play for the mover: 0 loses, 1 draws, 2 wins; null if not known. */
  result: number | null;
  /** Whether another move has a better exact result. */
  worsensResult?: boolean;
}

/** A move with the grade that determines its colour. */
export interface Heat extends RatedMove {
  grade: number;
}

/** A ring around a cell, or a number in a seat's colour on it. */
export interface Mark {
  cell: number;
  seat?: number;
  label: string;
  classes?: string;
}

/** Marks on the board in addition to the position. */
export interface Marks {
  heat?: Heat[];
  /** Cells of moves that throw a better result away. */
  lost?: number[];
  marks: Mark[];
}

export type Point = [x: number, y: number];

/** What a renderer must know about a table: `Board.config` of its game in ninetka_web/games. */
export interface GoConfig {
  size: number;
  stars: number[];
}
export interface KropkiConfig {
  width: number;
  height: number;
}
/** The configurations of all games; each renderer uses only its own fields. */
export type Config = GoConfig & KropkiConfig;

/** Draws the board of a game; the layers are stacked in the order of the methods. */
export interface Renderer {
  /** The view box of the board. */
  box: [x: number, y: number, width: number, height: number];
  /** The side of a square, in units of the view box. */
  unit: number;
  /** The number of cells that have a place on the board. */
  numCells: number;
  centre(cell: number): Point;
  name(cell: number): string;
  defs(): SVGElement[];
  ground(): SVGElement[];
  under(position: Position): SVGElement[];
  trace(position: Position): SVGElement[];
  stones(position: Position): SVGElement[];
  over?(position: Position): SVGElement[];
  /** Return a mark that the cell can be clicked, null if none is needed. */
  clickMark(target: ClickTarget, choices: Choices): SVGElement | null;
  /** Return a preview of what a click would do. */
  preview(target: ClickTarget, choices: Choices): SVGElement;
  /** Return lines that describe the position for screen readers. */
  describe(position: Position): string[];
}

/** A module static/games/NAME.js. */
export interface RendererModule {
  icon(seat: number): SVGElement;
  make(config: Config, turned: boolean): Renderer;
}
