// The analysis panel: search results and exact results for the shown position, hints, and trying moves without changing
// the game. The server analyses only while this panel is visible; see ninetka_web/thinking/analysis_service.py.

import { DRAWN, capitalize, h, toast } from "./dom.js";
import { seatIcon } from "./board.js";

/**
 * @import {
 *   Action, AnalysisMessage, App, Attributes, Candidate, Chat, Child, ExactMessage, FailedMessage, Hint,
 *   InsightMessage, Mark, Marks, RatedMove, Shares, TableMessage, Variation, Winner
 * } from "../../tools/page/types"
 * @import { TableView } from "./table.js"
 */

/**
 * A move of a variation.
 * @typedef {{ seat: number, name: string, to: number | null, cell?: number | null }} VariationMove
 */

/** @type {Record<string, string>} */
const ENGINES = { mcts: "Tree search", net: "Network", solver: "Solver" };
/** Upper limits of the grades of moves: the win probability that a move loses compared with the best move. */
const GRADE_LIMITS = [0.02, 0.05, 0.15, Infinity];
/** Loss of win probability from which a move is listed as a mistake. */
const MIN_MISTAKE = 0.05;
/** @param {number} share */
const percent = (share) => `${Math.round(100 * share)} %`;
/** @param {number} lost */
const gradeOf = (lost) => GRADE_LIMITS.findIndex((limit) => lost < limit);
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
    this.chosenEngine = localStorage.getItem("ninetka-engine") ?? "mcts";
    /**
     * The latest messages about the shown position, by message type.
     * @type {{ analysis?: AnalysisMessage, exact?: ExactMessage, insight?: InsightMessage, failed?: FailedMessage }}
     */
    this.results = {};
    /** @type {number[] | null} */
    this.triedActions = null; // the actions that are tried from the shown position; null in the game itself
    /** @type {Variation | null} */
    this.variation = null; // the server's answer for these actions
    /** @type {Hint | null} */
    this.latestHint = null;
    /** @type {Shares | null} */
    this.shares = null;
    /** @type {Winner[]} */
    this.winners = [];
    this.requestKey = ""; // identifies what was requested last, empty after a stop
    this.revision = -1; // the revision of the latest state at the last refresh
    this.positionKey = ""; // identifies the shown position at the last refresh
    /** @type {number | undefined} */
    this.timer = undefined;
    this.errorText = "";
    this.compiling = false;
    this.showsExpected = false;
  }

  /** The engines that can analyse this game with this number of players. */
  get engines() {
    const { game, state } = this.view;
    const players = state.seats.length;
    /** @param {string} name */
    const isSupported = (name) =>
      game.agents.every((agent) => agent.name !== name || !agent.seats.length || agent.seats.includes(players));
    return game.engines.filter(isSupported);
  }

  /** The engine that analyses: the engine chosen last, or the first one if this game does not support it. */
  get engine() {
    return this.engines.includes(this.chosenEngine) ? this.chosenEngine : this.engines[0];
  }

  get isOpen() {
    return this.view.tab === "analysis";
  }

  /** Request an analysis of the shown position, or stop the analysis if the panel is not visible. */
  refresh() {
    const state = this.view.latest;
    if (this.view.closed || !state || !this.isOpen || document.hidden) {
      this.stop();
      return;
    }
    if (this.revision !== state.revision) this.winners = []; // the old ones belong to other moves
    const positionKey = `${state.revision} ${state.round} ${this.view.ply}`;
    if (this.triedActions && this.positionKey !== positionKey) this.triedActions = [];
    this.revision = state.revision;
    this.positionKey = positionKey;
    const request = `${positionKey} ${this.triedActions} ${this.engine}`;
    if (request === this.requestKey) return;
    this.requestKey = request;
    this.results = {};
    this.errorText = "";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.request(), 80); // because dragging the slider shows many positions
  }

  /** Request an analysis of the shown position, or a hint. */
  async request(hint = false) {
    this.compiling = false;
    try {
      const { engine, triedActions } = this;
      const more = { ...(triedActions && { variation: triedActions }), ...(hint && { hint }) };
      await this.app.connection.send({ type: "analyse", ply: this.view.ply, engine, ...more });
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (!this.triedActions && !hint) this.errorText = message;
      else toast(message);
      if (this.triedActions) this.tryMoves(this.triedActions.length ? this.triedActions.slice(0, -1) : null);
      this.view.draw();
    }
  }

  /** Stop the analysis on the server; if another tab is open, also stop trying moves. */
  stop() {
    clearTimeout(this.timer);
    if (this.requestKey) this.app.connection.send({ type: "stop_analysis" }).catch(() => {});
    this.requestKey = "";
    if (!this.isOpen) this.triedActions = null;
  }

  /** Handle a message of the server. @param {Exclude<TableMessage, Chat>} message */
  receive(message) {
    const { view } = this;
    if (message.type === "lost") {
      this.requestKey = ""; // request again after the connection is restored
      return;
    }
    if ("engine" in message && message.engine && message.engine !== this.engine) return;
    switch (message.type) {
      case "hint":
        this.receiveHint(message);
        return;
      case "shares":
        this.shares = message.shares;
        break;
      case "winners":
        this.winners = message.winners;
        break;
      case "compiling":
        this.compiling = true;
        if (!this.isOpen) toast(`Compiling ${message.what}; this happens only once …`);
        break;
      default:
        if (message.ply !== view.ply || String(message.variation) !== String(this.triedActions)) return;
        if (message.type === "variation") this.variation = message;
        else this.results = { ...this.results, [message.type]: message };
        if (message.type === "analysis" || message.type === "exact") this.compiling = false;
    }
    if (this.isOpen) view.draw(message.type === "variation");
  }

  // Trying moves and hints

  /** The tried moves and the choices after them; null if no moves are tried or the server has not answered yet. */
  get trial() {
    const { isOpen, triedActions, variation, view } = this;
    if (!isOpen || !triedActions || !variation || variation.ply !== view.ply) return null;
    return variation.variation.length <= triedActions.length ? variation : null;
  }

  /** Try actions from the shown position; null returns to the game. @param {number[] | null} actions */
  tryMoves(actions) {
    this.triedActions = actions;
    if (!actions) this.variation = null;
    this.refresh();
    this.view.draw();
  }

  /** Take back the last tried move; return whether there was one. */
  stepBack() {
    if (!this.triedActions?.length) return false;
    this.tryMoves(this.triedActions.slice(0, -1));
    return true;
  }

  requestHint() {
    this.requestKey = "";
    this.request(true);
  }

  /** @param {Hint} message */
  receiveHint(message) {
    if (message.ply !== this.view.state.moves.length) return;
    this.latestHint = message;
    const chanceText = message.wins ? "which wins for certain" : `with a ${percent(message.chance)} chance to win`;
    toast(`Hint: ${message.name}, ${chanceText}`);
    this.view.draw();
    this.refresh();
  }

  /**
   * Create a table that continues from a ply of this game, with agents in all other seats.
   * @param {number} ply
   * @param {number} seat
   */
  async playFrom(ply, seat) {
    const { state, game } = this.view;
    const seats = state.seats.map(({ agent }, number) => (number === seat ? "me" : agent || game.opponent));
    try {
      const position = await this.app.connection.send({ type: "position", ply });
      this.app.send({ type: "create", game: state.game, seats, position });
    } catch (error) {
      toast(/** @type {Error} */ (error).message);
    }
  }

  // Results

  /**
   * The moves of the position, best first, each with its loss, the loss's certainty, and the exact result if known.
   * @returns {RatedMove[]}
   */
  get ratedMoves() {
    const { analysis, exact } = this.results;
    const { toMove } = this.view.position;
    /** @param {Winner | undefined} winner */
    const valueOf = (winner) => (winner == null ? null : winner === toMove ? 2 : Number(winner === DRAWN));
    const winners = new Map(exact?.moves.map(({ action, winner }) => [action, valueOf(winner)]));
    const best = valueOf(exact?.winner);
    /** @type {(move: Action | Candidate) => RatedMove} */
    const rate = (move) => {
      const result = winners.get(move.action) ?? null;
      const isLost = best === 0 && analysis; // the search prefers moves that are harder to refute
      if (result === null || best === null || isLost) return { lost: 0, sure: 0, ...move, result: null };
      const worsensResult = result < best;
      return { ...move, result, worsensResult, lost: Number(worsensResult), sure: 1 };
    };
    const moves = (analysis?.candidates ?? exact?.moves ?? []).map(rate);
    return moves.sort((a, b) => Number(a.worsensResult ?? false) - Number(b.worsensResult ?? false));
  }

  get insight() {
    return (this.isOpen && this.results.insight?.insight) || null;
  }

  /** The marks on the board: colours of moves, the expected variation, or a hint. @returns {Marks} */
  get marks() {
    const { latestHint, view } = this;
    if (!this.isOpen) {
      if (latestHint?.ply !== view.ply || latestHint.cell === null || view.shownPly !== null) return { marks: [] };
      return { marks: [{ cell: latestHint.cell, seat: view.state.to_move, label: "" }] };
    }
    if (this.showsExpected) return { marks: numberedMarks(this.results.analysis?.expected ?? []) };
    const { ratedMoves } = this;
    const heat = ratedMoves.map((move) => {
      const chance = move.result === null ? move.chance : move.result / 2;
      return { ...move, grade: gradeOf(move.lost), chance };
    });
    return {
      heat,
      lost: ratedMoves.flatMap(({ worsensResult, cell }) => (worsensResult && cell !== null ? [cell] : [])),
      marks: [],
    };
  }

  /** Return the win probability that the move after `ply` plies lost; null if not known. @param {number} ply */
  lossOf(ply) {
    const { winners, view } = this;
    const { moves } = view.state;
    const { seat } = moves[ply];
    const shares = this.timelineShares() ?? [];
    /** @param {Winner | undefined} winner */
    const valueOf = (winner) => (winner == null ? null : winner === DRAWN ? 0.5 : Number(winner === seat));
    const before = valueOf(winners[ply]);
    const after = valueOf(winners[ply + 1]);
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
   * Return the win probabilities in each position of the game; null if none are known.
   * @returns {Shares | null}
   */
  timelineShares() {
    const { winners, shares } = this;
    const { moves, seats } = this.view.state;
    const count = moves.length + 1;
    if (!this.isOpen) return null;
    if (this.engine === "solver") {
      /** @param {number} winner */
      const onlyFor = (winner) => seats.map((_, seat) => Number(seat === winner));
      if (winners.length !== count) return null;
      return winners.map((winner) => (winner === null || winner === DRAWN ? null : onlyFor(winner)));
    }
    return shares?.length === count && shares.some((share) => share?.length === seats.length) ? shares : null;
  }

  // The panel

  element() {
    const { results } = this;
    if (this.errorText) return h("p", { class: "faint" }, `${capitalize(this.errorText)}.`);
    const resultParts = results.failed ? [failure(results.failed)] : this.resultParts();
    const parts = [
      this.engineChoice(),
      this.tryControls(),
      this.verdict(),
      ...resultParts,
      this.mistakes(),
      this.insightPart(),
    ];
    return h("div", { class: "analysis" }, ...parts);
  }

  engineChoice() {
    const { engine: chosen, engines } = this;
    if (engines.length < 2) return null;
    const choices = engines.map((value) => {
      const change = () => this.chooseEngine(value);
      const id = `engine-${value}`;
      const input = h("input", { type: "radio", name: "engine", value, id, checked: value === chosen, change });
      return h("label", { class: "choice" }, input, h("span", {}, ENGINES[value]));
    });
    return h("fieldset", { class: "row" }, h("legend", { class: "unseen" }, "Engine"), choices);
  }

  /** Return the results of the chosen engine, or a text while there are none. @returns {Child[]} */
  resultParts() {
    const { analysis, exact } = this.results;
    const isSolver = this.engine === "solver";
    if (analysis) {
      const { candidates, expected, shares } = analysis;
      const best = candidates.length > 0 && this.candidates();
      return [h("h2", {}, "Chance to win"), this.shareBar(shares), best, this.expected(expected)];
    }
    if (isSolver && exact) {
      const open = exact.winner === null && h("p", { class: "faint" }, "It is not known yet who wins.");
      return [open, this.candidates()];
    }
    if (isSolver && !this.compiling && this.view.position.over) return [];
    const waitText = isSolver
      ? "The solver finds perfect play late in the game; its results appear here."
      : "Thinking …";
    const text = this.compiling ? "Compiling; this happens only once and can take a minute or two …" : waitText;
    return [h("p", { class: "faint" }, text)];
  }

  /** Return a bar of the win probabilities of all seats. @param {number[]} shares */
  shareBar(shares) {
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
  chooseEngine(engine) {
    this.chosenEngine = engine;
    localStorage.setItem("ninetka-engine", engine);
    this.shares = null;
    this.refresh();
    this.view.draw();
  }

  /** Describe who wins with perfect play and which moves throw that away. */
  verdict() {
    const { view } = this;
    const { exact } = this.results;
    const { colours } = view.game;
    const { over, toMove } = view.position;
    if (!exact || exact.winner === null || over) return null;
    const { moves, winner } = exact;
    const mistakes = this.ratedMoves.filter((move) => move.worsensResult).map((move) => move.name);
    const resultText = winner === DRAWN ? "the game is drawn" : `${colours[winner]} wins`;
    const all = moves.every((move) => move.winner !== null) ? "" : " known so far";
    let text = ` With perfect play ${resultText}. Every move${all} keeps that.`;
    if (mistakes.length)
      text = ` With perfect play ${resultText}. These moves throw that away: ${mistakes.join(", ")}.`;
    else if (winner !== toMove) text = ` With perfect play ${resultText}, whatever ${colours[toMove]} does.`;
    return h("p", { class: "verdict" }, winner !== DRAWN && seatIcon(view.state.game, winner), text);
  }

  candidates() {
    const { view } = this;
    const { analysis } = this.results;
    const rows = this.ratedMoves.slice(0, 7).map((move) => this.candidate(move));
    const parts = [
      h("h2", {}, `Best moves for ${view.game.colours[view.position.toMove]}`),
      h("ol", { class: "candidates" }, rows),
    ];
    if (analysis) {
      const count = analysis.simulations.toLocaleString("en");
      const progress = analysis.more ? `Only ${count} simulations so far` : `${count} simulations`;
      const text = `${progress}; paler moves are less certain. Lost compared with the best move: `;
      const grades = GRADE_LIMITS.map((limit, grade) =>
        h("span", { class: `grade w${grade}` }, limit < 1 ? `under ${percent(limit)}` : "more"),
      );
      parts.push(h("p", { class: "faint" }, text, grades));
    }
    return h("div", {}, ...parts);
  }

  /** @param {RatedMove} move */
  candidate(move) {
    const { board } = this.view;
    const { cell, chance = 0, lost, result, sure, to } = move;
    const point = () => board.pointAt(cell, to);
    const clear = () => board.pointAt(null);
    const estimate = sure ? percent(chance) : "–";
    return h(
      "li",
      {
        tabindex: 0,
        id: `move-${move.action}`,
        class: `w${gradeOf(lost)}`,
        pointerenter: point,
        pointerleave: clear,
        focus: point,
        blur: clear,
      },
      h("b", {}, move.name),
      meter(result === null ? chance : result / 2, sure),
      h("span", {}, result === null ? estimate : ["loses", "draws", "wins"][result]),
      h("span", { class: "faint" }, result === null && sure && lost >= 0.005 ? `−${percent(lost)}` : ""),
    );
  }

  /** Return the engine's expected variation and a button that shows it on the board. @param {VariationMove[]} moves */
  expected(moves) {
    if (!moves.length) return null;
    const press = () => {
      this.showsExpected = !this.showsExpected;
      this.view.draw();
    };
    const state = { class: "small", "aria-pressed": String(this.showsExpected) };
    const show = button("show-line", "Show on the board", press, state);
    return h("div", {}, h("h2", {}, "Expected play"), this.chips(moves), show);
  }

  /** @param {VariationMove[]} moves */
  chips(moves) {
    const { view } = this;
    const show = () => view.board.drawMarks(numberedMarks(moves));
    const reset = () => view.board.drawMarks(view.marks.marks);
    const chips = moves.map(({ seat, name }) => h("span", { class: `move c${seat + 1}` }, name));
    return h("p", { class: "line", pointerenter: show, pointerleave: reset }, chips);
  }

  /** Return the buttons that try moves and that play on from the shown position. */
  tryControls() {
    const { triedActions, trial, view } = this;
    const { position, state } = view;
    const seat = state.you.includes(position.toMove) ? position.toMove : (state.you[0] ?? position.toMove);
    const toggle = button(
      "try",
      triedActions ? "Back to the game" : "Try moves",
      () => this.tryMoves(triedActions ? null : []),
      {
        class: "small",
        "aria-pressed": String(triedActions !== null),
        title: "Play other moves here without changing the game",
      },
    );
    if (triedActions) {
      const more = { class: "small", disabled: !triedActions.length };
      const back = button("try-back", "Back a move", () => this.stepBack(), more);
      return h("div", { class: "buttons" }, toggle, back, trial && trial.moves.length > 0 && this.chips(trial.moves));
    }
    const more = { class: "small", title: "At a new table, against agents" };
    const playOn = () => this.playFrom(view.ply, seat);
    const play = !position.over && button("play-from", "Play on from here", playOn, more);
    return h("div", { class: "buttons" }, toggle, play);
  }

  /** Return the game-specific insight into the position: a text and a variation. */
  insightPart() {
    const { title, text, variation = [], note } = this.insight ?? {};
    if (!title) return null;
    const verdict = text && h("p", { class: "verdict" }, text);
    const moves = variation.length > 0 && this.chips(variation);
    return h("div", {}, h("h2", {}, title), verdict, moves, h("p", { class: "faint" }, note));
  }

  /** Return the worst moves of the user, or of all seats if the user has no seat. */
  mistakes() {
    const { view } = this;
    const { moves, you } = view.state;
    const mistakes = moves.flatMap((move, ply) => {
      const lost = this.lossOf(ply) ?? 0;
      return lost >= MIN_MISTAKE && (!you.length || you.includes(move.seat)) ? [{ move, ply, lost }] : [];
    });
    if (!mistakes.length) return null;
    const worst = mistakes.sort((a, b) => b.lost - a.lost).slice(0, 5);
    const rows = worst.map(({ move, ply, lost }) => {
      const attributes = {
        type: "button",
        class: `move c${move.seat + 1}`,
        id: `mistake-${ply}`,
        title: "Look at the position before it",
        click: () => view.showPly(ply),
      };
      const retryAttributes = { class: "small", title: "At a new table, from the position before this move" };
      return h(
        "li",
        {},
        h("button", attributes, `${ply + 1}. ${move.name}`),
        h("span", { class: "faint" }, this.isBlunder(ply) ? "threw the win away" : `lost about ${percent(lost)}`),
        button(`again-${ply}`, "Try again from here", () => this.playFrom(ply, move.seat), retryAttributes),
      );
    });
    return h("div", {}, h("h2", {}, you.length ? "My mistakes" : "Mistakes"), h("ol", { class: "mistakes" }, rows));
  }
}

/** @param {FailedMessage} failed */
const failure = ({ reason }) => h("p", { class: "failure", role: "alert" }, `The analysis failed: ${reason}.`);

/** Return numbers on the cells where the moves of a variation end. @type {(moves: VariationMove[]) => Mark[]} */
const numberedMarks = (moves) =>
  moves.slice(0, 9).flatMap(({ seat, cell = null, to }, number) => {
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
