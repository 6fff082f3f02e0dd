// What the agents think of the position that is looked at. The server thinks only while this panel is in sight.

import { h } from "./dom.js";
import { stoneIcon } from "./board.js";
import { COLOURS, PASS, capital, squareName } from "./rules.js";

const ENGINES = { mcts: "Tree search", net: "Network" };
const percent = (share) => `${Math.round(100 * share)} %`;

export class Analysis {
  constructor(app, view) {
    this.app = app;
    this.view = view;
    this.engine = app.welcome.agents.includes("net") && localStorage.getItem("ninetka-engine") === "net" ? "net" : "mcts";
    this.found = null;
    this.shares = null;
    this.exact = null;
    this.winners = [];
    this.wanted = "";
    this.problem = "";
    this.compiling = false;
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
    return tab === "analysis" && this.exact?.ply === ply && state.seats.length === 2 && this.current ? this.exact : null;
  }

  /** The moves that would throw a win away. */
  get thrown() {
    const { perfect } = this;
    return perfect?.winner === this.view.position.toMove ? perfect.lost : [];
  }

  /** Tell whether the move after `ply` plies threw a win away. */
  isBlunder(ply) {
    const { moves } = this.view.state;
    const [before, after] = [this.winners[ply], this.winners[ply + 1]];
    return this.winners.length === moves.length + 1 && before === moves[ply].seat && after === 1 - before;
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
    const engines = h("fieldset", { class: "row" }, h("legend", { class: "unseen" }, "Who analyses"), Object.entries(ENGINES).map(([engine, label]) => h("label", { class: "choice" },
      h("input", { type: "radio", name: "engine", value: engine, checked: engine === this.engine, disabled: !this.app.welcome.agents.includes(engine), change: () => this.choose(engine) }), h("span", {}, label))));
    const { current } = this;
    if (!current) return h("div", { class: "analysis" }, engines, h("p", { class: "faint" }, this.compiling ? "Compiling, once: this can take a minute or two …" : "Thinking …"));
    const seats = this.view.state.seats.length;
    return h("div", { class: "analysis" }, engines,
      h("h3", {}, "Chance to win"), chances(current.shares),
      this.verdict(), current.candidates.length > 0 && this.candidates(current),
      h("h3", {}, "MaxN's view"), this.maxn(current.maxn, seats));
  }

  choose(engine) {
    this.engine = engine;
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
    const { toMove } = this.view.position;
    const colour = COLOURS[perfect.winner];
    if (perfect.winner !== toMove) return h("p", { class: "verdict" }, stoneIcon(perfect.winner), ` With perfect play ${colour} wins, whatever ${COLOURS[toMove]} does.`);
    const lost = perfect.lost.map(squareName).join(", ");
    return h("p", { class: "verdict" }, stoneIcon(perfect.winner), ` With perfect play ${colour} wins. `, lost ? `These moves throw the win away: ${lost}.` : "Every move keeps the win.");
  }

  candidates(current) {
    const { toMove } = this.view.position;
    const most = Math.max(1, ...current.candidates.map((candidate) => candidate.visits));
    const rows = current.candidates.slice(0, 6).map(({ action, visits, shares }) => h("li", {
      tabindex: 0, pointerenter: () => this.point(action), pointerleave: () => this.view.board.point(null), focus: () => this.point(action), blur: () => this.view.board.point(null),
    }, h("b", {}, squareName(action)), meter(visits / most), h("span", {}, visits ? percent(shares[toMove]) : "–")));
    return h("div", {}, h("h3", {}, `Best moves for ${COLOURS[toMove]}`), h("ol", { class: "candidates" }, rows),
      h("p", { class: "faint" }, `The warmer a square, the more of ${current.simulations.toLocaleString("en")} simulations chose it; the number is ${COLOURS[toMove]}'s chance to win, in per cent.`));
  }

  point(action) {
    const { state, board, ply } = this.view;
    const legal = new Map(ply === state.moves.length ? state.legal : []);
    board.point(action, legal.get(action) ?? (state.moves[ply]?.action === action ? state.moves[ply].to : action));
  }

  /** MaxN's numbers by seat: as the board stands, and where its line leads. */
  maxn({ now, values, line }, seats) {
    const row = (name, numbers) => h("tr", {}, h("th", { scope: "row" }, name), numbers.map((number) => h("td", {}, String(number))));
    return h("div", {}, h("table", { class: "numbers" },
      h("thead", {}, h("tr", {}, h("th", {}), Array.from({ length: seats }, (_, seat) => h("th", { scope: "col" }, stoneIcon(seat))))),
      h("tbody", {}, row("now", now), values.length > 0 && row("after its line", values))),
    line.length > 0 && h("p", { class: "line" }, line.map(({ seat, action }) => h("span", { class: `move c${seat + 1}` }, action === PASS ? "pass" : squareName(action)))),
    h("p", { class: "faint" }, "Its count of sections, stones and blocked stones, higher is better", line.length > 0 ? "; the line is the play that it expects." : "."));
  }
}

/** The chances of all seats as one bar. */
function chances(shares) {
  return h("div", { class: "chances", role: "img", "aria-label": shares.map((share, seat) => `${COLOURS[seat]} ${percent(share)}`).join(", ") },
    shares.map((share, seat) => {
      const part = h("span", { class: `c${seat + 1}` }, share >= 0.12 ? percent(share) : "");
      part.style.flexGrow = Math.max(share, 0.001);
      return part;
    }));
}

function meter(share) {
  const fill = h("i", {});
  fill.style.width = `${100 * share}%`;
  return h("span", { class: "meter", "aria-hidden": "true" }, fill);
}
