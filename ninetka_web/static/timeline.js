// The timeline of a game: win probabilities of all seats, where known, and a slider through the plies.

import { h, svg } from "./dom.js";

/** @import { Shares, State } from "../../tools/page/types" */

export class Timeline {
  /**
   * @param {(ply: number) => void} show is called with the ply that the user wants to see.
   * @param {() => void} turn is called when the user turns the board.
   */
  constructor(show, turn) {
    this.show = show;
    this.ply = 0;
    this.plies = 0;
    this.band = svg("svg", {
      class: "band",
      preserveAspectRatio: "none",
      "aria-hidden": "true",
      click: (event) => this.jump(event),
    });
    this.slider = h("input", {
      type: "range",
      id: "slider",
      min: 0,
      step: 1,
      "aria-label": "Ply",
      input: (event) => show(Number(event.currentTarget.value)),
    });
    /** @type {(id: string, label: string, title: string, click: () => void) => HTMLElement} */
    const button = (id, label, title, click) =>
      h("button", { type: "button", class: "quiet", id, title, "aria-label": title, click }, label);
    this.count = h("output", { class: "count" });
    const steps = h(
      "div",
      { class: "steps-row" },
      button("first", "|◀", "To the beginning", () => show(0)),
      button("back", "◀", "One ply back", () => show(this.ply - 1)),
      this.slider,
      button("forward", "▶", "One ply forward", () => show(this.ply + 1)),
      button("last", "▶|", "To the end", () => show(Infinity)),
      this.count,
      button("turn", "⇅", "Turn the board", turn),
    );
    this.element = h("div", { class: "timeline" }, this.band, steps);
  }

  /**
   * Draw the game of a state.
   * @param {State} state
   * @param {number} ply the ply of the shown position.
   * @param {Shares | null} shares
   */
  draw(state, ply, shares) {
    const { moves } = state;
    const plies = moves.length;
    this.ply = ply;
    this.plies = plies;
    this.slider.max = String(plies);
    this.slider.value = String(ply);
    this.slider.disabled = plies === 0;
    this.count.textContent = `${ply} / ${plies}`;
    const width = Math.max(1, plies);
    this.band.setAttribute("viewBox", `0 0 ${width} 100`);
    this.band.classList.toggle("known", Boolean(shares));
    /** @type {(classes: string, x: number) => SVGElement} */
    const line = (classes, x) => svg("line", { class: classes, x1: x, x2: x, y1: 0, y2: 100 });
    const stages = moves.flatMap((move, i) => (i > 0 && move.stage !== moves[i - 1].stage ? [line("phase", i)] : []));
    const areas = shares ? stack(shares, state.seats.length) : [];
    this.band.replaceChildren(...areas, ...stages, ...(plies ? [line("now", ply)] : []));
  }

  /** @param {MouseEvent} event */
  jump(event) {
    const box = this.band.getBoundingClientRect();
    this.show(Math.round(((event.clientX - box.left) / box.width) * this.plies));
  }
}

/**
 * Return stacked areas, one per seat, for each range of plies with known win probabilities.
 * @param {Shares} shares
 * @param {number} players
 */
function stack(shares, players) {
  const areas = [];
  for (let from = 0; from < shares.length; from++) {
    if (!shares[from]) continue;
    let to = from;
    while (shares[to + 1]) to++;
    const plies = shares.slice(from, to + 1).filter((share) => share !== null);
    const below = plies.map(() => 100);
    const edge = () => plies.map((_, i) => `${from + i},${below[i].toFixed(2)}`);
    for (let seat = 0; seat < players; seat++) {
      const lower = edge();
      plies.forEach((share, i) => (below[i] -= 100 * share[seat]));
      areas.push(svg("polygon", { class: `c${seat + 1}`, points: [...lower, ...edge().reverse()].join(" ") }));
    }
    from = to;
  }
  return areas;
}
