// The types of the page's JavaScript (ninetka_web/static), for the type check of `make lint`. Browsers never load this
// file. The messages are described in ninetka_web/server/protocol.py; what a game says of itself, in
// ninetka_web/games/adapter.py.

import type { Link } from "../../ninetka_web/static/link.js";

// Elements

type Handlers<E extends Element> = {
  [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name] & { readonly currentTarget: E }) => unknown;
};

/** Attributes of an element that is made: functions listen to events, `true` and `false` mean presence. */
export interface Attributes<E extends Element> extends Handlers<E> {
  [name: string]: string | number | boolean | null | undefined | ((event: never) => unknown);
}

type OneChild = Node | string | false | null | undefined;
/** What an element that is made may contain; what is missing is left out. */
export type Child = OneChild | readonly OneChild[];

// Games

/** A seat that won, -1 for a draw, null while the game is open or where the result is not known. */
export type Winner = number | null;

export type Options = Record<string, boolean | number | string>;

/** A row of the form of a new game in which one of a few values is chosen; each sets one option or several. */
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
  least: number;
  most: number;
  step: number;
}

export type Row = ChoicesRow | NumberRow;

/** An agent that may sit at a table. */
export interface Agent {
  name: string;
  title: string;
  strengths: [number, string][];
  option: string;
  usual: number;
  /** At how many seats it plays; empty for any number. */
  seats: number[];
}

/** What the server says of a game. */
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

/** A move that may be played: the cell that is touched and the one where it ends, null for a move without a place. */
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
  notes: string[];
}

/** A move that was played, with the cells that it changed. */
export interface Move {
  seat: number;
  action: number;
  name: string;
  says: string;
  stage: string;
  from: number | null;
  to: number | null;
  passed: number[];
  cells: [number, number][];
  scores: number[];
  notes: string[];
}

/** What can be clicked: a cell, the action, and the cell where what is moved ends, if that is another one. */
export type Hit = [cell: number, action: number, landing?: number];

/** What can be done in a position. */
export interface Choices {
  /** A plain number is a cell and an action at once. */
  hits: (number | Hit)[];
  buttons: { action: number; label: string; key: string }[];
  /** The cells that an action would change beyond its own, by cell. */
  previews: Record<number, number[]>;
  /** The cell code of what is put down. */
  ghost: number;
  verb: string;
}

/** How a finished game may be counted; what the board shows of it is Go's. */
export interface Proposal {
  scores: number[];
  winner: number;
  result: string;
  say: string;
  dead: number[];
  owners: number[];
}

export interface Clock {
  left: number[];
  running: number | null;
  main: number;
  increment: number;
}

/** A table, as it is told after each change; `TableView.update` puts all moves in the place of the new ones. */
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
  told: string;
  resigned: number[];
  called_off: boolean;
  wish: "" | "undo" | "rematch";
  undo: number;
  question: number;
  paused: boolean;
  wait: number;
  shown: boolean;
  from_position: boolean;
  you: number[];
  asked: boolean;
  /** Seconds that people who have left have to come back, by seat. */
  away: Record<number, number>;
  clock: Clock | null;
  accepted: boolean;
  compiling: boolean;
  /** The number of the first move in `moves`. */
  from: number;
  moves: Move[];
  /** Only where the moves before `from` count no more. */
  start?: Start;
}

/** A line about a table, for a list. */
export interface TableLine {
  table: string;
  game: string;
  who: string[];
  ply: number;
  over: boolean;
  winner: Winner;
}

// Messages of the server, except `State`

export interface Welcome {
  type: "welcome";
  token: string;
  games: Game[];
  tables: TableLine[];
}

export interface ChatLine {
  who: string;
  text: string;
}

export interface Chat {
  type: "chat";
  lines: ChatLine[];
  new?: boolean;
}

/** Which position a message of an analysis is about. */
interface Place {
  ply: number;
  line: number[] | null;
}

/** A move with the mover's chance to win, what it loses against the best one, and how sure that is, 0 to 1. */
export interface Candidate extends Action {
  chance: number;
  lost: number;
  sure: number;
}

export interface AnalysisMessage extends Place {
  type: "analysis";
  engine: string;
  simulations: number;
  /** Whether the search goes on. */
  more: boolean;
  candidates: Candidate[];
  expected: SeatAction[];
  shares: number[];
}

/** Perfect play: who wins, and who wins after each move. */
export interface Exact extends Place {
  type: "exact";
  winner: Winner;
  moves: (Action & { winner: Winner })[];
}

/** What only this game knows of a position; `ownership` is Go's. */
export interface Insight {
  title?: string;
  words?: string;
  note?: string;
  line?: SeatAction[];
  ownership?: number[];
}

export interface InsightMessage extends Place {
  type: "insight";
  insight: Insight;
}

export interface Failed extends Place {
  type: "failed";
  engine: string;
  reason: string;
}

/** What can be done after moves that are tried. */
export interface Variation extends Place, Choices {
  type: "variation";
  line: number[];
  moves: Move[];
  over: boolean;
  to_move: number;
}

export interface Hint extends Place, Candidate {
  type: "hint";
  wins: boolean;
}

/** The chances to win in each position of the game; null where they are not known yet. */
export type Shares = (number[] | null)[];

export type AnalysisAnswer =
  | AnalysisMessage
  | Exact
  | InsightMessage
  | Failed
  | Variation
  | Hint
  | { type: "shares"; engine: string; shares: Shares }
  | { type: "winners"; winners: Winner[] };

export interface Compiling {
  type: "compiling";
  what: string;
  engine?: string;
}

/** The connection is lost: said by `Link`, not by the server. */
export interface Lost {
  type: "lost";
}

/** What a table hears. */
export type TableMessage = Chat | Compiling | Lost | AnalysisAnswer;

/** Answers to one message. */
export type Answer =
  | { type: "done"; id: number }
  | { type: "refused"; id: number; reason: string }
  | { type: "text"; id: number; text: string };

/** Every message but plain answers. */
export type Message = Welcome | State | { type: "notice"; text: string } | TableMessage;

// What the page says

/** What a message to the server may be; `Link.say` adds the id. */
export type Wish =
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
  | { type: "leave" | "undo" | "resign" | "rematch" | "key" | "rest" }
  | { type: "sit"; seat: number; name: string; keep: boolean }
  | { type: "play"; ply: number; action: number }
  | { type: "answer"; question: number; accept: boolean }
  | { type: "accept" | "play_on"; question: number }
  | { type: "claim"; win: boolean }
  | { type: "say"; text: string }
  | { type: "reclaim"; key: string }
  | { type: "pace"; wait: number; paused: boolean }
  | { type: "analyse"; ply: number; engine: string; line?: number[]; hint?: boolean }
  | { type: "record"; sgf: boolean }
  | { type: "position"; ply: number };

// The page

/** What pages need from main.js. */
export interface App {
  link: Link;
  /** Send a message and show why it was refused, if so. */
  ask(message: Wish): Promise<unknown>;
  readonly welcome: Welcome;
  game(name: string): Game;
  about(game: Game): void;
  go(path: string): void;
}

/** What was chosen for one game in the form of a new game. */
export interface Part {
  options: Options;
  seats: string[];
  players: number;
}

/** What was chosen in the form of a new game, kept in the browser. */
export interface Form {
  game: string;
  name: string;
  clock: string;
  keep: boolean;
  more: boolean;
  games: Record<string, Partial<Part>>;
}

// The board

/** The position that is looked at. */
export interface Position {
  cells: number[];
  /** The move that led to it. */
  last: Move | null;
  /** Whether it is the newest one of the game. */
  live: boolean;
  ply: number;
  over: boolean;
  toMove: number;
  scores: number[];
  notes: string[];
  proposal: Proposal | null;
  insight: Insight | null;
}

/** A move with what is known of it. */
export interface Weighed extends Action {
  chance?: number | undefined;
  lost: number;
  sure: number;
  /** Under perfect play, for the mover: 0 loses, 1 draws, 2 wins; null where that is not known. */
  result: number | null;
  /** Whether it throws a better result away. */
  thrown?: boolean;
}

/** A move as the board colours it. */
export interface Heat extends Weighed {
  grade: number;
}

/** A ring around a cell, or a number of a seat's colour on it. */
export interface Mark {
  cell: number;
  seat?: number;
  label: string;
  classes?: string;
}

/** What is drawn on the board in addition to the position. */
export interface Marks {
  heat?: Heat[];
  /** Cells that throw a win away. */
  lost?: number[];
  marks: Mark[];
}

export type Point = [x: number, y: number];

/** What a drawing file must know of a table: `Adapter.config` of its game. */
export interface GoConfig {
  size: number;
  stars: number[];
}
export interface KropkiConfig {
  width: number;
  height: number;
}
/** All of them: only the game's own drawing file knows which it gets. */
export type Config = GoConfig & KropkiConfig;

/** How the board of a game looks; `svg` elements are drawn in the order of the methods. */
export interface Face {
  /** The view box of the board. */
  box: [x: number, y: number, width: number, height: number];
  /** The side of a square in the units of the view box. */
  unit: number;
  /** How many cells have a place on the board. */
  places: number;
  centre(cell: number): Point;
  name(cell: number): string;
  defs(): SVGElement[];
  ground(): SVGElement[];
  under(position: Position): SVGElement[];
  trace(position: Position): SVGElement[];
  stones(position: Position): SVGElement[];
  over?(position: Position): SVGElement[];
  /** Show that a cell can be clicked, where that is not plain to see. */
  hint(hit: Hit, choices: Choices): SVGElement | null;
  /** Show what a click would do. */
  ghost(hit: Hit, choices: Choices): SVGElement;
  /** Say what is on the board, in lines. */
  describe(position: Position): string[];
}

/** A drawing file, static/games/NAME.js. */
export interface FaceModule {
  icon(seat: number): SVGElement;
  make(config: Config, turned: boolean): Face;
}
