// What the agents think of the position that is looked at. The server thinks only while this panel is in sight.

import { capital, h } from "./dom.js";
import { seatIcon } from "./board.js";

const ENGINES = { mcts: "Tree search", net: "Network" };
const percent = (share) => `${Math.round(100 * share)} %`;

export class Analysis {
  constructor(app, view) {
    this.app = app;
    this.view = view;
    this.wish = localStorage.getItem("ninetka-engine") ?? "mcts";
    this.found = null;
    this.shares = null;
    this.exact = null;
    this.winners = [];
    this.wanted = "";
    this.problem = "";
    this.compiling = false;
  }

  /** Who analyses: what was chosen last, if the game has it. */
  get engine() {
    const { engines } = this.view.game;
    return engines.includes(this.wish) ? this.wish : engines[0];
  }

  /** Ask for what is in sight, or let the server rest. */
  look() {
    const { state } = this.view;
    if (this.view.closed || !state || this.view.tab !== "analysis" || document.hidden) {
      this.rest();
      return;
    }
    const wanted = `${state.revision} ${state.round} ${this.view.ply} ${this.engine}`;
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    if (this.revision !== state.revision) {
      this.found = this.exact = null; // of a game that has gone on, or back
      this.winners = [];
      this.revision = state.revision;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), 80); // a hand on the slider passes many positions
  }

  async ask() {
    this.compiling = false;
    try {
      await this.app.link.say({ type: "analyse", ply: this.view.ply, engine: this.engine });
      this.problem = "";
    } catch (error) {
      this.problem = error.message;
      this.found = this.shares = null;
      this.view.draw();
    }
  }

  rest() {
    clearTimeout(this.timer);
    if (this.wanted) this.app.link.say({ type: "rest" }).catch(() => {});
    this.wanted = "";
  }

  hear(message) {
    if (message.type === "lost") this.wanted = ""; // ask again when the line is back
    if (message.engine && message.engine !== this.engine) return;
    this.compiling = message.type === "compiling";
    if (message.type === "analysis") this.found = message;
    else if (message.type === "shares") this.shares = message.shares;
    else if (message.type === "exact") this.exact = message;
    else if (message.type === "winners") this.winners = message.winners;
    else if (!this.compiling) return;
    if (this.view.tab === "analysis") this.view.draw();
  }

  get current() {
    return this.found?.ply === this.view.ply ? this.found : null;
  }

  /** What perfect play makes of the moves of this position, if that is known. */
  get perfect() {
    const { state, ply, tab } = this.view;
    return tab === "analysis" && this.exact?.ply === ply && state.seats.length === 2 ? this.exact : null;
  }

  /** The moves that would throw a win away. */
  get thrown() {
    const { perfect } = this;
    return perfect?.winner === this.view.position.toMove ? perfect.lost.map(([cell]) => cell).filter((cell) => cell !== null) : [];
  }

  /** Tell whether the move after `ply` plies threw a win away. */
  isBlunder(ply) {
    const { moves } = this.view.state;
    const [before, after] = [this.winners[ply], this.winners[ply + 1]];
    return this.winners.length === moves.length + 1 && before === moves[ply].seat && after === 1 - before;
  }

  /** What else is known of the position that is looked at. */
  get insight() {
    return this.view.tab === "analysis" ? this.current?.insight : null;
  }

  heat(ply) {
    return this.view.tab === "analysis" && this.found?.ply === ply ? this.found.candidates : [];
  }

  band() {
    const { shares } = this;
    return this.view.tab === "analysis" && shares?.length === this.view.state.moves.length + 1 && shares[0].length === this.view.state.seats.length ? shares : null;
  }

  element() {
    if (this.problem) return h("p", { class: "faint" }, `${capital(this.problem)}.`);
    const { engines } = this.view.game;
    const choice = engines.length > 1 && h("fieldset", { class: "row" }, h("legend", { class: "unseen" }, "Who analyses"), engines.map((engine) => h("label", { class: "choice" },
      h("input", { type: "radio", name: "engine", value: engine, checked: engine === this.engine, change: () => this.choose(engine) }), h("span", {}, ENGINES[engine]))));
    const { current } = this;
    if (!current) return h("div", { class: "analysis" }, choice, this.verdict(), h("p", { class: "faint" }, this.compiling ? "Compiling, once: this can take a minute or two …" : "Thinking …"));
    return h("div", { class: "analysis" }, choice, this.verdict(),
      h("h3", {}, "Chance to win"), this.chances(current.shares),
      current.candidates.length > 0 && this.candidates(current), this.more(current.insight));
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
    this.found = this.shares = null;
    this.view.draw();
    this.look();
    document.querySelector(`input[name=engine][value=${engine}]`)?.focus();
  }

  /** Say who wins if nobody errs again, and which moves throw that away. */
  verdict() {
    const { perfect } = this;
    if (!perfect || perfect.winner === null) return null;
    const { view } = this, { colours } = view.game, { toMove } = view.position;
    const words = (text) => h("p", { class: "verdict" }, seatIcon(view.state.game, perfect.winner), ` With perfect play ${colours[perfect.winner]} wins${text}`);
    if (perfect.winner !== toMove) return words(`, whatever ${colours[toMove]} does.`);
    const lost = perfect.lost.map(([, name]) => name).join(", ");
    return words(lost ? `. These moves throw the win away: ${lost}.` : ". Every move keeps the win.");
  }

  candidates(current) {
    const { view } = this, { toMove } = view.position, colour = view.game.colours[toMove];
    const most = Math.max(1, ...current.candidates.map((candidate) => candidate.visits));
    const rows = current.candidates.slice(0, 6).map(({ cell, to, name, visits, shares }) => {
      const point = () => view.board.point(cell, to), rest = () => view.board.point(null);
      return h("li", { tabindex: 0, pointerenter: point, pointerleave: rest, focus: point, blur: rest }, h("b", {}, name), meter(visits / most), h("span", {}, visits ? percent(shares[toMove]) : "–"));
    });
    return h("div", {}, h("h3", {}, `Best moves for ${colour}`), h("ol", { class: "candidates" }, rows),
      h("p", { class: "faint" }, `The warmer a place, the more of ${current.simulations.toLocaleString("en")} simulations chose it; the number is ${colour}'s chance to win, in per cent.`));
  }

  /** What only this game knows of a position: words, numbers by seat, a line of play. */
  more({ title, words, rows, line, note }) {
    if (!title) return null;
    const { game, seats } = this.view.state;
    const numbers = rows && h("table", { class: "numbers" },
      h("thead", {}, h("tr", {}, h("td", {}), seats.map((_, seat) => h("th", { scope: "col" }, seatIcon(game, seat))))),
      h("tbody", {}, rows.map(([name, values]) => h("tr", {}, h("th", { scope: "row" }, name), values.map((value) => h("td", {}, String(value)))))));
    return h("div", {}, h("h3", {}, title), words && h("p", { class: "verdict" }, words), numbers,
      line?.length > 0 && h("p", { class: "line" }, line.map(([seat, name]) => h("span", { class: `move c${seat + 1}` }, name))), h("p", { class: "faint" }, note));
  }
}

function meter(share) {
  const fill = h("i", {});
  fill.style.width = `${100 * share}%`;
  return h("span", { class: "meter", "aria-hidden": "true" }, fill);
}
