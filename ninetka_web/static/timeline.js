// The whole game in a band: chances to win by seat where they are known, and a slider through the plies.

import { h, svg } from "./dom.js";

export class Timeline {
  /**
   * @param {(ply: number) => void} show is called with the ply that a person wants to see.
   * @param {() => void} turn is called when the board is to be seen from the other side.
   */
  constructor(show, turn) {
    this.show = show;
    this.ply = 0;
    this.band = svg("svg", { class: "band", preserveAspectRatio: "none", "aria-hidden": "true", click: (event) => this.jump(event) });
    this.slider = h("input", { type: "range", id: "slider", min: 0, step: 1, "aria-label": "Ply", input: () => show(Number(this.slider.value)) });
    const button = (id, label, title, to) => h("button", { type: "button", class: "quiet", id, title, "aria-label": title, click: () => show(to()) }, label);
    this.count = h("output", { class: "count" });
    this.element = h("div", { class: "timeline" }, this.band,
      h("div", { class: "steps-row" }, button("first", "|◀", "To the beginning", () => 0), button("back", "◀", "A ply back", () => this.ply - 1), this.slider,
        button("forward", "▶", "A ply forward", () => this.ply + 1), button("last", "▶|", "To the end", () => Infinity), this.count,
        h("button", { type: "button", class: "quiet", id: "turn", title: "Turn the board", "aria-label": "Turn the board", click: turn }, "⇅")));
  }

  /** Draw the game of a state, looked at after `ply` plies; `shares` per position, or null. */
  draw(state, ply, shares) {
    const plies = state.moves.length;
    this.ply = ply;
    this.plies = plies;
    this.slider.max = plies;
    this.slider.value = ply;
    this.slider.disabled = plies === 0;
    this.count.textContent = `${ply} / ${plies}`;
    const width = Math.max(1, plies);
    this.band.setAttribute("viewBox", `0 0 ${width} 100`);
    this.band.classList.toggle("known", Boolean(shares));
    const marks = state.moves.flatMap((move, i) => (i > 0 && move.stage !== state.moves[i - 1].stage ? [svg("line", { class: "phase", x1: i, x2: i, y1: 0, y2: 100 })] : []));
    const now = svg("line", { class: "now", x1: ply, x2: ply, y1: 0, y2: 100 });
    this.band.replaceChildren(...(shares ? stack(shares, state.seats.length) : []), ...marks, ...(plies ? [now] : []));
  }

  jump(event) {
    const box = this.band.getBoundingClientRect();
    this.show(Math.round(((event.clientX - box.left) / box.width) * this.plies));
  }
}

/** Return an area per seat, one on top of the other, for each stretch of the game that is known; they are always whole. */
function stack(shares, players) {
  const areas = [];
  for (let from = 0; from < shares.length; from++) {
    if (!shares[from]) continue;
    let to = from;
    while (shares[to + 1]) to++;
    const plies = shares.slice(from, to + 1), below = plies.map(() => 100);
    const edge = () => plies.map((_, i) => `${from + i},${below[i].toFixed(2)}`);
    for (let seat = 0; seat < players; seat++) {
      const lower = edge();
      plies.forEach((share, i) => { below[i] -= 100 * share[seat]; });
      areas.push(svg("polygon", { class: `c${seat + 1}`, points: [...lower, ...edge().reverse()].join(" ") }));
    }
    from = to;
  }
  return areas;
}
