// What the agents think of the position that is looked at, and what if: other moves are tried here without changing the
// game. The server thinks only while this panel is in sight.

import { DRAWN, capital, h, toast } from "./dom.js";
import { seatIcon } from "./board.js";

const ENGINES = { mcts: "Tree search", net: "Network", solver: "Solver" };
/** Below which chance lost against the best a move has a colour. */
const GRADES = [0.02, 0.05, 0.15, Infinity];
const MISTAKE = 0.05;
const percent = (share) => `${Math.round(100 * share)} %`;
const gradeOf = (lost) => GRADES.findIndex((below) => lost < below);
const button = (id, label, click, more = {}) => h("button", { type: "button", id, click, ...more }, label);

export class Analysis {
  constructor(app, view) {
    this.app = app;
    this.view = view;
    this.wish = localStorage.getItem("ninetka-engine") ?? "mcts";
    this.found = {}; // what was heard of the position that is looked at, by kind of message
    this.line = null; // the actions that are tried from there, null for none
    this.variation = null; // what the server said of these
    this.hinted = null;
    this.shares = null;
    this.winners = [];
    this.wanted = "";
    this.problem = "";
    this.compiling = false;
    this.showsLine = false;
  }

  /** Who can analyse here. */
  get engines() {
    const { game, state } = this.view;
    const fits = (name) => !game.agents.some((agent) => agent.name === name && agent.seats.length && !agent.seats.includes(state.seats.length));
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
    const { state, ply } = this.view;
    if (this.view.closed || !state || !this.isOpen || document.hidden) {
      this.rest();
      return;
    }
    if (this.revision !== state.revision) this.winners = []; // of a game that has gone on, or back
    const place = `${state.revision} ${state.round} ${ply}`;
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

  async ask(more = {}) {
    this.compiling = false;
    try {
      await this.app.link.say({ type: "analyse", ply: this.view.ply, engine: this.engine, ...(this.line && { line: this.line }), ...more });
    } catch (error) {
      if (!this.line && !more.hint) this.problem = error.message;
      else toast(error.message);
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

  hear(message) {
    const { view } = this, { type } = message;
    if (type === "lost") this.wanted = ""; // ask again when the line is back
    if (message.engine && message.engine !== this.engine) return;
    if (type === "hint") return this.hearHint(message);
    if (type === "shares") this.shares = message.shares;
    else if (type === "winners") this.winners = message.winners;
    else if (type === "compiling") this.compiling = true;
    else if (message.ply !== view.ply || String(message.line) !== String(this.line)) return;
    else if (type === "variation") this.variation = message;
    else this.found[type] = message;
    if (type === "analysis" || type === "exact") this.compiling = false;
    if (this.isOpen) view.draw(type === "variation");
    else if (this.compiling) toast(`Compiling ${message.what}, once …`);
  }

  // Trying moves, and hints

  /** What is known of the moves that are tried: those made, and what can be done then. */
  get trial() {
    const { variation } = this;
    return this.isOpen && this.line && variation && variation.ply === this.view.ply && variation.line.length <= this.line.length ? variation : null;
  }

  /** Try a line from the position that is looked at; null to return to the game. */
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
    this.ask({ hint: true });
  }

  hearHint(message) {
    if (message.ply !== this.view.state.moves.length) return;
    this.hinted = message;
    toast(`Hint: ${message.name}${message.wins ? ", which wins for certain" : `, with ${percent(message.chance)} to win`}`);
    this.view.draw();
    this.look();
  }

  /** Play on from a ply of this game at a new table; everybody else is an agent there. */
  async playFrom(ply, seat) {
    const { state, game } = this.view;
    const seats = state.seats.map(({ agent }, number) => (number === seat ? "me" : agent || game.opponent));
    try {
      const position = await this.app.link.say({ type: "position", ply });
      this.app.ask({ type: "create", game: state.game, seats, position });
    } catch (error) {
      toast(error.message);
    }
  }

  // What is known

  /** The moves of the position, best first: what each loses, how sure that is, and whether it wins for certain. */
  get moves() {
    const { analysis, exact } = this.found, { toMove } = this.view.position;
    const worth = (winner) => (winner == null ? null : winner === toMove ? 2 : Number(winner === DRAWN));
    const winners = new Map(exact?.moves.map(({ action, winner }) => [action, worth(winner)]));
    const most = worth(exact?.winner);
    const known = (analysis?.candidates ?? exact?.moves ?? []).map((move) => {
      const result = winners.get(move.action) ?? null, thrown = most !== null && result !== null && result < most;
      if (result === null || most === null || (most === 0 && analysis)) return { lost: 0, sure: 0, ...move, result: null }; // where all is lost, some moves are harder to answer
      return { ...move, result, thrown, lost: Number(thrown), sure: 1 };
    });
    return known.sort((a, b) => Boolean(a.thrown) - Boolean(b.thrown));
  }

  get insight() {
    return this.isOpen ? this.found.insight?.insight : null;
  }

  /** What is drawn on the board: colours of moves, or a line of play; or a hint. */
  get marks() {
    const { hinted, view } = this;
    if (!this.isOpen) return { marks: hinted && hinted.ply === view.ply && view.shown === null ? [{ ...hinted, seat: view.state.to_move, label: "" }] : [] };
    if (this.showsLine) return { marks: numbered(this.found.analysis?.expected ?? []) };
    const { moves } = this;
    return { heat: moves.map((move) => ({ ...move, grade: gradeOf(move.lost), chance: move.result === null ? move.chance : move.result / 2 })), lost: moves.filter((move) => move.thrown).map((move) => move.cell) };
  }

  /** What the move after `ply` plies lost, in chances to win; null where that is not known. */
  lossOf(ply) {
    const { winners, view } = this, { moves } = view.state, { seat } = moves[ply], shares = this.band() ?? [];
    const worth = (winner) => (winner == null ? null : winner === DRAWN ? 0.5 : Number(winner === seat));
    const [before, after] = [worth(winners[ply]), worth(winners[ply + 1])];
    if (winners.length === moves.length + 1 && before !== null && after !== null) return before - after;
    return shares[ply] && shares[ply + 1] ? shares[ply][seat] - shares[ply + 1][seat] : null;
  }

  /** Tell whether the move after `ply` plies threw a win away. */
  isBlunder(ply) {
    const { moves } = this.view.state, { winners } = this;
    return winners.length === moves.length + 1 && winners[ply] === moves[ply].seat && winners[ply + 1] != null && winners[ply + 1] !== moves[ply].seat;
  }

  /** The chances to win in each position, null where they are not known yet; null if none are. */
  band() {
    const { winners, shares } = this, { moves, seats } = this.view.state;
    const fits = (list) => list?.length === moves.length + 1;
    if (!this.isOpen) return null;
    if (this.engine === "solver") return fits(winners) ? winners.map((winner) => winner == null || winner === DRAWN ? null : seats.map((_, seat) => Number(seat === winner))) : null;
    return fits(shares) && shares.some((share) => share?.length === seats.length) ? shares : null;
  }

  // The panel

  element() {
    const { engines, found } = this;
    if (this.problem) return h("p", { class: "faint" }, `${capital(this.problem)}.`);
    const choice = engines.length > 1 && h("fieldset", { class: "row" }, h("legend", { class: "unseen" }, "Who analyses"), engines.map((engine) => h("label", { class: "choice" },
      h("input", { type: "radio", name: "engine", value: engine, id: `engine-${engine}`, checked: engine === this.engine, change: () => this.choose(engine) }), h("span", {}, ENGINES[engine]))));
    return h("div", { class: "analysis" }, choice, this.trying(), this.verdict(), ...(found.failed ? [this.failure()] : this.thoughts()), this.mistakes(), this.more());
  }

  failure() {
    return h("p", { class: "failure", role: "alert" }, `The analysis failed: ${this.found.failed.reason}.`);
  }

  thoughts() {
    const { analysis, exact } = this.found;
    if (analysis) return [h("h2", {}, "Chance to win"), this.chances(analysis.shares), analysis.candidates.length > 0 && this.candidates(), this.expected(analysis.expected)];
    if (this.engine === "solver" && exact) return [exact.winner === null && h("p", { class: "faint" }, "Not known yet who wins."), this.candidates()];
    if (this.engine === "solver" && !this.compiling && this.view.position.over) return [];
    return [h("p", { class: "faint" }, this.compiling ? "Compiling, once: this can take a minute or two …" : this.engine === "solver" ? "The solver knows perfect play late in the game, and says here what it finds." : "Thinking …")];
  }

  /** The chances of all seats as one bar. */
  chances(shares) {
    const { colours } = this.view.game;
    return h("div", { class: "chances", role: "img", "aria-label": shares.map((share, seat) => `${colours[seat]} ${percent(share)}`).join(", ") },
      shares.map((share, seat) => {
        const part = h("span", { class: `c${seat + 1}` }, share >= 0.12 ? percent(share) : "");
        part.style.flexGrow = Math.max(share, 0.001);
        return part;
      }));
  }

  choose(engine) {
    this.wish = engine;
    localStorage.setItem("ninetka-engine", engine);
    this.shares = null;
    this.look();
    this.view.draw();
  }

  /** Say who wins if nobody errs again, and which moves throw that away. */
  verdict() {
    const { exact } = this.found, { view } = this, { colours } = view.game, { toMove } = view.position;
    if (!exact || exact.winner === null || view.position.over) return null;
    const words = (...text) => h("p", { class: "verdict" }, exact.winner !== DRAWN && seatIcon(view.state.game, exact.winner), ...text);
    const who = exact.winner === DRAWN ? "the game is drawn" : `${colours[exact.winner]} wins`;
    const thrown = this.moves.filter((move) => move.thrown).map((move) => move.name);
    if (exact.winner !== toMove && !thrown.length) return words(` With perfect play ${who}, whatever ${colours[toMove]} does.`);
    return words(` With perfect play ${who}. `, thrown.length ? `These moves throw that away: ${thrown.join(", ")}.` : `Every move${exact.moves.every((move) => move.winner !== null) ? "" : " known so far"} keeps that.`);
  }

  candidates() {
    const { view } = this, { analysis } = this.found, colour = view.game.colours[view.position.toMove], { moves } = this;
    const rows = moves.slice(0, 7).map((move) => {
      const point = () => view.board.point(move.cell, move.to), rest = () => view.board.point(null), grade = gradeOf(move.lost);
      const chance = move.result === null ? (move.sure ? percent(move.chance) : "–") : ["loses", "draws", "wins"][move.result];
      const item = h("li", { tabindex: 0, id: `move-${move.action}`, class: `w${grade}`, pointerenter: point, pointerleave: rest, focus: point, blur: rest },
        h("b", {}, move.name), meter(move), h("span", {}, chance), h("span", { class: "faint" }, move.result === null && move.sure && move.lost >= 0.005 ? `−${percent(move.lost)}` : ""));
      return item;
    });
    const count = analysis && `${analysis.more ? "Only " : ""}${analysis.simulations.toLocaleString("en")} simulations${analysis.more ? " so far" : ""}; the paler a move, the less is known of it.`;
    return h("div", {}, h("h2", {}, `Best moves for ${colour}`), h("ol", { class: "candidates" }, rows),
      analysis && h("p", { class: "faint" }, `${count} Lost against the best: `, GRADES.map((below, grade) => h("span", { class: `grade w${grade}` }, below < 1 ? `under ${percent(below)}` : "more"))));
  }

  /** The line of play that the engine expects; on the board its moves have numbers. */
  expected(line) {
    if (!line?.length) return null;
    const press = () => { this.showsLine = !this.showsLine; this.view.draw(); };
    return h("div", {}, h("h2", {}, "Expected play"), this.chips(line), button("show-line", "Show on the board", press, { class: "small", "aria-pressed": String(this.showsLine) }));
  }

  chips(line) {
    const { view } = this, show = () => view.board.drawMarks(numbered(line)), rest = () => view.board.drawMarks(view.marks.marks);
    return h("p", { class: "line", pointerenter: show, pointerleave: rest }, line.map(({ seat, name }) => h("span", { class: `move c${seat + 1}` }, name)));
  }

  /** Other moves are tried, and played on from here. */
  trying() {
    const { line, view } = this, { state } = view, trying = line !== null;
    const seat = state.you.includes(view.position.toMove) ? view.position.toMove : state.you[0] ?? view.position.toMove;
    return h("div", { class: "buttons" },
      button("try", trying ? "Back to the game" : "Try moves", () => this.tryOut(trying ? null : []), { class: "small", "aria-pressed": String(trying), title: "Play other moves here without changing the game" }),
      trying ? button("try-back", "Back a move", () => this.stepBack(), { class: "small", disabled: !line.length })
        : !view.position.over && button("play-from", "Play on from here", () => this.playFrom(view.ply, seat), { class: "small", title: "At a new table, against agents" }),
      trying && this.trial?.moves.length > 0 && this.chips(this.trial.moves));
  }

  /** What only this game knows of a position: words, a line of play. */
  more() {
    const { title, words, line, note } = this.insight ?? {};
    return title && h("div", {}, h("h2", {}, title), words && h("p", { class: "verdict" }, words), line?.length > 0 && this.chips(line), h("p", { class: "faint" }, note));
  }

  /** The worst moves of the game: of who looks, or of all where nobody here plays. */
  mistakes() {
    const { view } = this, { state } = view, { you } = state;
    const worst = state.moves.map((move, ply) => ({ move, ply, lost: this.lossOf(ply) })).filter(({ move, lost }) => lost >= MISTAKE && (!you.length || you.includes(move.seat)))
      .sort((a, b) => b.lost - a.lost).slice(0, 5);
    if (!worst.length) return null;
    const row = ({ move, ply, lost }) => h("li", {},
      h("button", { type: "button", class: `move c${move.seat + 1}`, id: `mistake-${ply}`, title: "Look at the position before it", click: () => view.show(ply) }, `${ply + 1}. ${move.name}`),
      h("span", { class: "faint" }, this.isBlunder(ply) ? "threw the win away" : `lost about ${percent(lost)}`),
      button(`again-${ply}`, "Try again from here", () => this.playFrom(ply, move.seat), { class: "small", title: "At a new table, from the position before this move" }));
    return h("div", {}, h("h2", {}, you.length ? "My mistakes" : "Mistakes"), h("ol", { class: "mistakes" }, worst.map(row)));
  }
}

/** A line of play as numbers on the cells where its moves end. */
const numbered = (line) => line.slice(0, 9).map(({ seat, cell, to }, number) => ({ seat, cell: to ?? cell, label: String(number + 1) })).filter(({ cell }) => cell !== null);

function meter({ chance, result, sure }) {
  const fill = h("i", {});
  fill.style.width = `${100 * (result === null ? chance : result / 2)}%`;
  fill.style.opacity = 0.25 + 0.75 * sure;
  return h("span", { class: "meter", "aria-hidden": "true" }, fill);
}
