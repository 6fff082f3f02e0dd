// What the agents think of the position that is looked at, and what if: other moves are tried here without changing the
// game. The server thinks only while this panel is in sight.

import { DRAWN, capital, h, toast } from "./dom.js";
import { seatIcon } from "./board.js";

/**
 * @import {
 *   Action, AnalysisMessage, App, Attributes, Candidate, Chat, Child, Exact, Failed, Hint, InsightMessage, Mark, Marks,
 *   Shares, TableMessage, Variation, Weighed, Winner
 * } from "../../tools/page/types"
 * @import { TableView } from "./table.js"
 */

/**
 * A move of a line of play.
 * @typedef {{ seat: number, name: string, to: number | null, cell?: number | null }} LineMove
 */

/** @type {Record<string, string>} */
const ENGINES = { mcts: "Tree search", net: "Network", solver: "Solver" };
/** Below which chance lost against the best a move has a colour. */
const GRADES = [0.02, 0.05, 0.15, Infinity];
const MISTAKE = 0.05;
/** @param {number} share */
const percent = (share) => `${Math.round(100 * share)} %`;
/** @param {number} lost */
const gradeOf = (lost) => GRADES.findIndex((below) => lost < below);
/** @type {(id: string, label: string, click: () => void, more?: Attributes<HTMLButtonElement>) => HTMLElement} */
const button = (id, label, click, more = {}) => h("button", { type: "button", id, click, ...more }, label);

export class Analysis {
  /**
   * @param {App} app
   * @param {TableView} view
   */
  constructor(app, view) {
    this.app = app;
    this.view = view;
    this.wish = localStorage.getItem("ninetka-engine") ?? "mcts";
    /**
     * What was heard of the position that is looked at, by kind of message.
     * @type {{ analysis?: AnalysisMessage, exact?: Exact, insight?: InsightMessage, failed?: Failed }}
     */
    this.found = {};
    /** @type {number[] | null} */
    this.line = null; // the actions that are tried from there, null for none
    /** @type {Variation | null} */
    this.variation = null; // what the server said of these
    /** @type {Hint | null} */
    this.hinted = null;
    /** @type {Shares | null} */
    this.shares = null;
    /** @type {Winner[]} */
    this.winners = [];
    this.wanted = "";
    this.revision = -1; // of the state that was looked at last
    this.place = ""; // which position that was
    /** @type {number | undefined} */
    this.timer = undefined;
    this.problem = "";
    this.compiling = false;
    this.showsLine = false;
  }

  /** Who can analyse here. */
  get engines() {
    const { game, state } = this.view;
    const players = state.seats.length;
    /** @param {string} name */
    const fits = (name) =>
      game.agents.every((agent) => agent.name !== name || !agent.seats.length || agent.seats.includes(players));
    return game.engines.filter(fits);
  }

  /** Who analyses: what was chosen last, if the game has it. */
  get engine() {
    return this.engines.includes(this.wish) ? this.wish : this.engines[0];
  }

  get isOpen() {
    return this.view.tab === "analysis";
  }

  /** Ask for what is in sight, or let the server rest. */
  look() {
    const state = this.view.latest;
    if (this.view.closed || !state || !this.isOpen || document.hidden) {
      this.rest();
      return;
    }
    if (this.revision !== state.revision) this.winners = []; // of a game that has gone on, or back
    const place = `${state.revision} ${state.round} ${this.view.ply}`;
    if (this.line && this.place !== place) this.line = [];
    this.revision = state.revision;
    this.place = place;
    const wanted = `${place} ${this.line} ${this.engine}`;
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    this.found = {};
    this.problem = "";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), 80); // a hand on the slider passes many positions
  }

  /** Ask the server: for all that is in sight, or for a hint. */
  async ask(hint = false) {
    this.compiling = false;
    try {
      const { engine, line } = this;
      const more = { ...(line && { line }), ...(hint && { hint }) };
      await this.app.link.say({ type: "analyse", ply: this.view.ply, engine, ...more });
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (!this.line && !hint) this.problem = message;
      else toast(message);
      if (this.line) this.tryOut(this.line.length ? this.line.slice(0, -1) : null);
      this.view.draw();
    }
  }

  rest() {
    clearTimeout(this.timer);
    if (this.wanted) this.app.link.say({ type: "rest" }).catch(() => {});
    this.wanted = "";
    if (!this.isOpen) this.line = null;
  }

  /** @param {Exclude<TableMessage, Chat>} message */
  hear(message) {
    const { view } = this;
    if (message.type === "lost") {
      this.wanted = ""; // ask again when the line is back
      return;
    }
    if ("engine" in message && message.engine && message.engine !== this.engine) return;
    switch (message.type) {
      case "hint":
        this.hearHint(message);
        return;
      case "shares":
        this.shares = message.shares;
        break;
      case "winners":
        this.winners = message.winners;
        break;
      case "compiling":
        this.compiling = true;
        if (!this.isOpen) toast(`Compiling ${message.what}, once …`);
        break;
      default:
        if (message.ply !== view.ply || String(message.line) !== String(this.line)) return;
        if (message.type === "variation") this.variation = message;
        else this.found = { ...this.found, [message.type]: message };
        if (message.type === "analysis" || message.type === "exact") this.compiling = false;
    }
    if (this.isOpen) view.draw(message.type === "variation");
  }

  // Trying moves, and hints

  /** What is known of the moves that are tried: those made, and what can be done then. */
  get trial() {
    const { isOpen, line, variation, view } = this;
    if (!isOpen || !line || !variation || variation.ply !== view.ply) return null;
    return variation.line.length <= line.length ? variation : null;
  }

  /** Try a line from the position that is looked at; null to return to the game. @param {number[] | null} line */
  tryOut(line) {
    this.line = line;
    if (!line) this.variation = null;
    this.look();
    this.view.draw();
  }

  /** Take the latest move that is tried back; tell whether there was one. */
  stepBack() {
    if (!this.line?.length) return false;
    this.tryOut(this.line.slice(0, -1));
    return true;
  }

  askHint() {
    this.wanted = "";
    this.ask(true);
  }

  /** @param {Hint} message */
  hearHint(message) {
    if (message.ply !== this.view.state.moves.length) return;
    this.hinted = message;
    const worth = message.wins ? "which wins for certain" : `with ${percent(message.chance)} to win`;
    toast(`Hint: ${message.name}, ${worth}`);
    this.view.draw();
    this.look();
  }

  /**
   * Play on from a ply of this game at a new table; agents take all other seats.
   * @param {number} ply
   * @param {number} seat
   */
  async playFrom(ply, seat) {
    const { state, game } = this.view;
    const seats = state.seats.map(({ agent }, number) => (number === seat ? "me" : agent || game.opponent));
    try {
      const position = await this.app.link.say({ type: "position", ply });
      this.app.ask({ type: "create", game: state.game, seats, position });
    } catch (error) {
      toast(/** @type {Error} */ (error).message);
    }
  }

  // What is known

  /**
   * The moves of the position, best first: what each loses, how sure that is, and whether it wins for certain.
   * @returns {Weighed[]}
   */
  get moves() {
    const { analysis, exact } = this.found;
    const { toMove } = this.view.position;
    /** @param {Winner | undefined} winner */
    const worth = (winner) => (winner == null ? null : winner === toMove ? 2 : Number(winner === DRAWN));
    const winners = new Map(exact?.moves.map(({ action, winner }) => [action, worth(winner)]));
    const most = worth(exact?.winner);
    /** @type {(move: Action | Candidate) => Weighed} */
    const weigh = (move) => {
      const result = winners.get(move.action) ?? null;
      const isLost = most === 0 && analysis; // where all is lost, some moves are harder to answer
      if (result === null || most === null || isLost) return { lost: 0, sure: 0, ...move, result: null };
      const thrown = result < most;
      return { ...move, result, thrown, lost: Number(thrown), sure: 1 };
    };
    const moves = (analysis?.candidates ?? exact?.moves ?? []).map(weigh);
    return moves.sort((a, b) => Number(a.thrown ?? false) - Number(b.thrown ?? false));
  }

  get insight() {
    return (this.isOpen && this.found.insight?.insight) || null;
  }

  /** What is drawn on the board: colours of moves, or a line of play; or a hint. @returns {Marks} */
  get marks() {
    const { hinted, view } = this;
    if (!this.isOpen) {
      if (hinted?.ply !== view.ply || hinted.cell === null || view.shown !== null) return { marks: [] };
      return { marks: [{ cell: hinted.cell, seat: view.state.to_move, label: "" }] };
    }
    if (this.showsLine) return { marks: numbered(this.found.analysis?.expected ?? []) };
    const { moves } = this;
    const heat = moves.map((move) => {
      const chance = move.result === null ? move.chance : move.result / 2;
      return { ...move, grade: gradeOf(move.lost), chance };
    });
    return { heat, lost: moves.flatMap(({ thrown, cell }) => (thrown && cell !== null ? [cell] : [])), marks: [] };
  }

  /** What the move after `ply` plies lost, in chances to win; null where that is not known. @param {number} ply */
  lossOf(ply) {
    const { winners, view } = this;
    const { moves } = view.state;
    const { seat } = moves[ply];
    const shares = this.band() ?? [];
    /** @param {Winner | undefined} winner */
    const worth = (winner) => (winner == null ? null : winner === DRAWN ? 0.5 : Number(winner === seat));
    const before = worth(winners[ply]);
    const after = worth(winners[ply + 1]);
    if (winners.length === moves.length + 1 && before !== null && after !== null) return before - after;
    const [now, next] = [shares[ply], shares[ply + 1]];
    return now && next ? now[seat] - next[seat] : null;
  }

  /** Return whether the move after `ply` plies threw a win away. @param {number} ply */
  isBlunder(ply) {
    const { winners } = this;
    const { moves } = this.view.state;
    const { seat } = moves[ply];
    const after = winners[ply + 1];
    return winners.length === moves.length + 1 && winners[ply] === seat && after !== null && after !== seat;
  }

  /**
   * The chances to win in each position, null where they are not known yet; null if none are.
   * @returns {Shares | null}
   */
  band() {
    const { winners, shares } = this;
    const { moves, seats } = this.view.state;
    const count = moves.length + 1;
    if (!this.isOpen) return null;
    if (this.engine === "solver") {
      /** @param {number} winner */
      const won = (winner) => seats.map((_, seat) => Number(seat === winner));
      if (winners.length !== count) return null;
      return winners.map((winner) => (winner === null || winner === DRAWN ? null : won(winner)));
    }
    return shares?.length === count && shares.some((share) => share?.length === seats.length) ? shares : null;
  }

  // The panel

  element() {
    const { found } = this;
    if (this.problem) return h("p", { class: "faint" }, `${capital(this.problem)}.`);
    const thoughts = found.failed ? [failure(found.failed)] : this.thoughts();
    const parts = [this.choice(), this.trying(), this.verdict(), ...thoughts, this.mistakes(), this.more()];
    return h("div", { class: "analysis" }, ...parts);
  }

  choice() {
    const { engine: chosen, engines } = this;
    if (engines.length < 2) return null;
    const choices = engines.map((value) => {
      const change = () => this.choose(value);
      const id = `engine-${value}`;
      const input = h("input", { type: "radio", name: "engine", value, id, checked: value === chosen, change });
      return h("label", { class: "choice" }, input, h("span", {}, ENGINES[value]));
    });
    return h("fieldset", { class: "row" }, h("legend", { class: "unseen" }, "Who analyses"), choices);
  }

  /** @returns {Child[]} */
  thoughts() {
    const { analysis, exact } = this.found;
    const isSolver = this.engine === "solver";
    if (analysis) {
      const { candidates, expected, shares } = analysis;
      const best = candidates.length > 0 && this.candidates();
      return [h("h2", {}, "Chance to win"), this.chances(shares), best, this.expected(expected)];
    }
    if (isSolver && exact) {
      const open = exact.winner === null && h("p", { class: "faint" }, "Not known yet who wins.");
      return [open, this.candidates()];
    }
    if (isSolver && !this.compiling && this.view.position.over) return [];
    const waits = isSolver
      ? "The solver knows perfect play late in the game, and says here what it finds."
      : "Thinking …";
    const text = this.compiling ? "Compiling, once: this can take a minute or two …" : waits;
    return [h("p", { class: "faint" }, text)];
  }

  /** The chances of all seats as one bar. @param {number[]} shares */
  chances(shares) {
    const { colours } = this.view.game;
    const label = shares.map((share, seat) => `${colours[seat]} ${percent(share)}`).join(", ");
    const parts = shares.map((share, seat) => {
      const part = h("span", { class: `c${seat + 1}` }, share >= 0.12 ? percent(share) : "");
      part.style.flexGrow = String(Math.max(share, 0.001));
      return part;
    });
    return h("div", { class: "chances", role: "img", "aria-label": label }, parts);
  }

  /** @param {string} engine */
  choose(engine) {
    this.wish = engine;
    localStorage.setItem("ninetka-engine", engine);
    this.shares = null;
    this.look();
    this.view.draw();
  }

  /** Say who wins if nobody errs again, and which moves throw that away. */
  verdict() {
    const { view } = this;
    const { exact } = this.found;
    const { colours } = view.game;
    const { over, toMove } = view.position;
    if (!exact || exact.winner === null || over) return null;
    const { moves, winner } = exact;
    const thrown = this.moves.filter((move) => move.thrown).map((move) => move.name);
    const who = winner === DRAWN ? "the game is drawn" : `${colours[winner]} wins`;
    const all = moves.every((move) => move.winner !== null) ? "" : " known so far";
    let text = ` With perfect play ${who}. Every move${all} keeps that.`;
    if (thrown.length) text = ` With perfect play ${who}. These moves throw that away: ${thrown.join(", ")}.`;
    else if (winner !== toMove) text = ` With perfect play ${who}, whatever ${colours[toMove]} does.`;
    return h("p", { class: "verdict" }, winner !== DRAWN && seatIcon(view.state.game, winner), text);
  }

  candidates() {
    const { view } = this;
    const { analysis } = this.found;
    const rows = this.moves.slice(0, 7).map((move) => this.candidate(move));
    const parts = [
      h("h2", {}, `Best moves for ${view.game.colours[view.position.toMove]}`),
      h("ol", { class: "candidates" }, rows),
    ];
    if (analysis) {
      const count = analysis.simulations.toLocaleString("en");
      const far = analysis.more ? `Only ${count} simulations so far` : `${count} simulations`;
      const text = `${far}; the paler a move, the less is known of it. Lost against the best: `;
      const grades = GRADES.map((below, grade) =>
        h("span", { class: `grade w${grade}` }, below < 1 ? `under ${percent(below)}` : "more"),
      );
      parts.push(h("p", { class: "faint" }, text, grades));
    }
    return h("div", {}, ...parts);
  }

  /** @param {Weighed} move */
  candidate(move) {
    const { board } = this.view;
    const { cell, chance = 0, lost, result, sure, to } = move;
    const point = () => board.point(cell, to);
    const rest = () => board.point(null);
    const guess = sure ? percent(chance) : "–";
    return h(
      "li",
      {
        tabindex: 0,
        id: `move-${move.action}`,
        class: `w${gradeOf(lost)}`,
        pointerenter: point,
        pointerleave: rest,
        focus: point,
        blur: rest,
      },
      h("b", {}, move.name),
      meter(result === null ? chance : result / 2, sure),
      h("span", {}, result === null ? guess : ["loses", "draws", "wins"][result]),
      h("span", { class: "faint" }, result === null && sure && lost >= 0.005 ? `−${percent(lost)}` : ""),
    );
  }

  /** The line of play that the engine expects; on the board its moves have numbers. @param {LineMove[]} line */
  expected(line) {
    if (!line.length) return null;
    const press = () => {
      this.showsLine = !this.showsLine;
      this.view.draw();
    };
    const state = { class: "small", "aria-pressed": String(this.showsLine) };
    const show = button("show-line", "Show on the board", press, state);
    return h("div", {}, h("h2", {}, "Expected play"), this.chips(line), show);
  }

  /** @param {LineMove[]} line */
  chips(line) {
    const { view } = this;
    const show = () => view.board.drawMarks(numbered(line));
    const rest = () => view.board.drawMarks(view.marks.marks);
    const moves = line.map(({ seat, name }) => h("span", { class: `move c${seat + 1}` }, name));
    return h("p", { class: "line", pointerenter: show, pointerleave: rest }, moves);
  }

  /** Other moves are tried, and played on from here. */
  trying() {
    const { line, trial, view } = this;
    const { position, state } = view;
    const seat = state.you.includes(position.toMove) ? position.toMove : (state.you[0] ?? position.toMove);
    const toggle = button("try", line ? "Back to the game" : "Try moves", () => this.tryOut(line ? null : []), {
      class: "small",
      "aria-pressed": String(line !== null),
      title: "Play other moves here without changing the game",
    });
    if (line) {
      const more = { class: "small", disabled: !line.length };
      const back = button("try-back", "Back a move", () => this.stepBack(), more);
      return h("div", { class: "buttons" }, toggle, back, trial && trial.moves.length > 0 && this.chips(trial.moves));
    }
    const more = { class: "small", title: "At a new table, against agents" };
    const playOn = () => this.playFrom(view.ply, seat);
    const play = !position.over && button("play-from", "Play on from here", playOn, more);
    return h("div", { class: "buttons" }, toggle, play);
  }

  /** What only this game knows of a position: words, a line of play. */
  more() {
    const { title, words, line = [], note } = this.insight ?? {};
    if (!title) return null;
    const verdict = words && h("p", { class: "verdict" }, words);
    const played = line.length > 0 && this.chips(line);
    return h("div", {}, h("h2", {}, title), verdict, played, h("p", { class: "faint" }, note));
  }

  /** The worst moves of the game: of who looks, or of all where nobody here plays. */
  mistakes() {
    const { view } = this;
    const { moves, you } = view.state;
    const mistakes = moves.flatMap((move, ply) => {
      const lost = this.lossOf(ply) ?? 0;
      return lost >= MISTAKE && (!you.length || you.includes(move.seat)) ? [{ move, ply, lost }] : [];
    });
    if (!mistakes.length) return null;
    const worst = mistakes.sort((a, b) => b.lost - a.lost).slice(0, 5);
    const rows = worst.map(({ move, ply, lost }) => {
      const look = {
        type: "button",
        class: `move c${move.seat + 1}`,
        id: `mistake-${ply}`,
        title: "Look at the position before it",
        click: () => view.show(ply),
      };
      const again = { class: "small", title: "At a new table, from the position before this move" };
      return h(
        "li",
        {},
        h("button", look, `${ply + 1}. ${move.name}`),
        h("span", { class: "faint" }, this.isBlunder(ply) ? "threw the win away" : `lost about ${percent(lost)}`),
        button(`again-${ply}`, "Try again from here", () => this.playFrom(ply, move.seat), again),
      );
    });
    return h("div", {}, h("h2", {}, you.length ? "My mistakes" : "Mistakes"), h("ol", { class: "mistakes" }, rows));
  }
}

/** @param {Failed} failed */
const failure = ({ reason }) => h("p", { class: "failure", role: "alert" }, `The analysis failed: ${reason}.`);

/** A line of play as numbers on the cells where its moves end. @type {(line: LineMove[]) => Mark[]} */
const numbered = (line) =>
  line.slice(0, 9).flatMap(({ seat, cell = null, to }, number) => {
    const end = to ?? cell;
    return end === null ? [] : [{ seat, cell: end, label: String(number + 1) }];
  });

/**
 * @param {number} chance
 * @param {number} sure
 */
function meter(chance, sure) {
  const fill = h("i", {});
  fill.style.width = `${100 * chance}%`;
  fill.style.opacity = String(0.25 + 0.75 * sure);
  return h("span", { class: "meter", "aria-hidden": "true" }, fill);
}
