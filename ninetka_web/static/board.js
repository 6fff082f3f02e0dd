// The board, whatever the game: what can be touched, by hand or by key, previews, heat, zoom. A drawing file of the
// game, games/NAME.js, says where the cells are and what they look like. Nothing is decided here.

import { h, svg } from "./dom.js";

const LAYERS = ["under", "heat", "trace", "stones", "over", "hints", "percents", "marks", "preview", "hits"];
const SMALL = 26; // pixels a square, below which a finger sees first where it would play
const LARGE = 44;
const TURNED = "ninetka-turned";
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const faces = new Map();
let byKey = false; // whether the keyboard was used last
addEventListener("keydown", () => { byKey = true; }, true);
addEventListener("pointerdown", () => { byKey = false; }, true);

/** Load a game's drawing file. */
export async function loadFace(game) {
  if (!faces.has(game)) faces.set(game, await import(`./games/${game}.js`));
  return faces.get(game);
}

/** A small picture of a seat of a game that was loaded. */
export const seatIcon = (game, seat) => faces.get(game).icon(seat);

/** What can be clicked as [cell, action, landing]. */
const hitOf = (hit) => (typeof hit === "number" ? [hit, hit] : hit);

export class Board {
  /**
   * @param {(action: number) => void} play is called with the action that a person chooses, be it legal or not.
   * @param {(cell: number | null) => void} idle is called by a click when nothing can be played.
   */
  constructor(game, config, play, idle) {
    this.turned = localStorage.getItem(TURNED) === "yes";
    this.make = () => faces.get(game).make(config, this.turned);
    this.face = this.make();
    this.play = play;
    this.idle = idle;
    this.zoom = 1;
    this.layers = Object.fromEntries(LAYERS.map((name) => [name, svg("g", { class: name, "aria-hidden": name === "hits" ? null : "true" })]));
    const { face } = this;
    this.svg = svg("svg", { class: "board", viewBox: face.box.join(" "), role: "group", "aria-label": "Board", "aria-describedby": "board-text", tabindex: -1 },
      svg("defs", {}, ...face.defs()), this.ground = svg("g", { "aria-hidden": "true" }, ...face.ground()), ...Object.values(this.layers));
    this.text = h("ul", { class: "unseen", id: "board-text" });
    this.holder = h("div", { class: "holder" }, this.svg);
    const button = (id, label, title, change) => h("button", { type: "button", class: "quiet", id, title, "aria-label": title, click: () => this.setZoom(change()) }, label);
    this.zooms = h("div", { class: "zooms", hidden: true }, button("zoom-out", "−", "Smaller", () => this.zoom / 1.4), button("zoom-in", "+", "Larger", () => this.zoom * 1.4));
    this.element = h("div", { class: "board-box" }, this.holder, this.zooms);
    this.listen();
    this.chosen = null;
    this.at = null; // the cell that was played or focused last
  }

  listen() {
    const { hits } = this.layers;
    const on = (names, act) => names.forEach((name) => hits.addEventListener(name, (event) => act(Number(event.target.dataset.cell), event)));
    on(["pointerover"], (cell) => this.showPreview(cell));
    on(["pointerout", "focusout"], () => this.showPreview(null));
    on(["focusin"], (cell) => {
      this.at = cell;
      if (byKey) this.showPreview(cell);
    });
    this.svg.addEventListener("click", (event) => this.click(event));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.fit()).observe(this.holder);
  }

  /** See the board from the other side; it is to be drawn then. */
  turn() {
    this.turned = !this.turned;
    localStorage.setItem(TURNED, this.turned ? "yes" : "no");
    this.face = this.make();
    this.ground.replaceChildren(...this.face.ground());
    this.layers.hits.replaceChildren();
  }

  /** How many pixels a square has. */
  get pixels() {
    return (this.svg.getBoundingClientRect().width / this.face.box[2]) * this.face.unit;
  }

  /** Offer to zoom where squares are small. */
  fit() {
    const whole = (this.holder.clientWidth / this.face.box[2]) * this.face.unit;
    this.zooms.hidden = whole >= 32 || !whole;
    if (this.zooms.hidden && this.zoom !== 1) this.setZoom(1);
    this.most = Math.max(1, LARGE / whole);
  }

  setZoom(zoom) {
    const { holder } = this;
    const middle = [(holder.scrollLeft + holder.clientWidth / 2) / holder.scrollWidth, (holder.scrollTop + holder.clientHeight / 2) / holder.scrollHeight];
    this.zoom = Math.max(1, Math.min(this.most ?? 1, zoom));
    this.svg.style.width = `${100 * this.zoom}%`;
    holder.classList.toggle("zoomed", this.zoom > 1);
    holder.scrollTo(middle[0] * holder.scrollWidth - holder.clientWidth / 2, middle[1] * holder.scrollHeight - holder.clientHeight / 2);
  }

  /**
   * Draw a position.
   * @param {object} position cells, the last move, and so on; see `TableView.position`.
   * @param {object} choices what the person may do: hits, ghost, verb, previews; null for nothing.
   * @param {object} more heat: moves with their grade; lost: cells that throw a win away; marks: cells with a seat and a
   *   label; animate: show the last move; waits: the person plays, and may have to wait for their turn.
   */
  draw(position, choices, { heat = [], lost = [], marks = [], animate = false, waits = false } = {}) {
    const { face, layers } = this;
    const focused = this.svg.contains(document.activeElement);
    this.position = position;
    this.choices = choices;
    this.waits = waits;
    this.hits = new Map((choices?.hits ?? []).map(hitOf).map((hit) => [hit[0], hit]));
    this.chosen = null;
    layers.under.replaceChildren(...face.under(position));
    layers.heat.replaceChildren(...this.drawHeat(heat));
    layers.trace.replaceChildren(...face.trace(position));
    layers.stones.replaceChildren(...face.stones(position));
    layers.over.replaceChildren(...(face.over?.(position) ?? []));
    layers.hints.replaceChildren(...[...this.hits.values()].map((hit) => face.hint(hit, choices)).filter(Boolean));
    layers.percents.replaceChildren(...this.drawChances(heat), ...lost.map((cell) => this.place(cell, svg("path", { class: "thrown", d: "M-4.6 4.6 L4.6 -4.6" }))));
    this.drawMarks(marks);
    layers.preview.replaceChildren();
    this.drawHits(focused);
    this.text.replaceChildren(...face.describe(position).map((line) => h("li", {}, line)));
    if (animate && position.last) this.animate(position.last);
  }

  place(cell, ...children) {
    const [x, y] = this.face.centre(cell);
    return svg("g", { transform: `translate(${x} ${y})` }, ...children);
  }

  /**
   * Draw what can be touched; one of them is in the tab order, the arrows go to the others. What can be touched still stays
   * the same element, so the focus stays with it; else it goes to what is nearest, as soon as there is something.
   */
  drawHits(focused) {
    const entry = this.entry(), before = new Map([...this.layers.hits.children].map((each) => [Number(each.dataset.cell), each]));
    for (const hit of this.hits.values()) {
      const each = before.get(hit[0]) ?? this.makeHit(hit[0]);
      each.setAttribute("aria-label", this.label(hit));
      each.setAttribute("tabindex", hit[0] === entry ? 0 : -1);
      before.delete(hit[0]);
    }
    for (const each of before.values()) each.remove();
    const held = document.activeElement;
    if (!focused || (held !== this.svg && this.svg.contains(held))) return;
    this.svg.focus({ preventScroll: true });
    // Later, because the browser lays everything out before it moves the focus.
    if (entry !== null && byKey) requestAnimationFrame(() => document.activeElement === this.svg && this.focus(this.entry()));
  }

  makeHit(cell) {
    const { unit } = this.face, [x, y] = this.face.centre(cell);
    return this.layers.hits.appendChild(svg("rect", { class: "hit", x: x - unit / 2, y: y - unit / 2, width: unit, height: unit, rx: 1.5, role: "button", "data-cell": cell }));
  }

  /** The cell where the keyboard comes to the board: where it was last, or next to there. */
  entry() {
    if (this.hits.size === 0) return null;
    if (this.at === null || this.hits.has(this.at)) return this.at ?? this.hits.keys().next().value;
    const [x, y] = this.face.centre(this.at);
    const away = (cell) => Math.hypot(this.face.centre(cell)[0] - x, this.face.centre(cell)[1] - y);
    return [...this.hits.keys()].reduce((best, cell) => (away(cell) < away(best) ? cell : best));
  }

  label([cell, , landing]) {
    const { name } = this.face;
    return landing === undefined ? `${name(cell)}: ${this.choices.verb}` : `${name(cell)}: ${this.choices.verb} to ${name(landing)}`;
  }

  /** Play a cell; a finger sees first where what it plays would end, or where it is if that is small. */
  click(event) {
    if (event.detail > 1 && event.pointerType !== "touch") return; // a double click is one
    const cell = event.target.dataset.cell;
    const hit = this.hits.get(Number(cell));
    if (cell === undefined || !hit) {
      const place = this.cellAt(event);
      if (this.choices && place !== null) this.play(place); // which cannot be played: the server says why
      else if (!this.choices) this.idle(place);
      return;
    }
    const unsure = event.pointerType === "touch" && (hit[2] !== undefined || this.pixels < SMALL);
    if (unsure && this.chosen !== hit[0]) {
      this.chosen = hit[0];
      this.showPreview(hit[0]);
    } else this.play(hit[1]);
  }

  /** The cell under the pointer, null for none. */
  cellAt(event) {
    const { face } = this;
    const box = this.svg.getBoundingClientRect(), scale = face.box[2] / box.width;
    const x = (event.clientX - box.left) * scale + face.box[0], y = (event.clientY - box.top) * scale + face.box[1];
    for (let cell = 0; cell < face.places; cell++) {
      const [cx, cy] = face.centre(cell);
      if (Math.abs(x - cx) < face.unit / 2 && Math.abs(y - cy) < face.unit / 2) return cell;
    }
    return null;
  }

  showPreview(cell) {
    const { preview } = this.layers;
    preview.replaceChildren();
    const hit = this.hits.get(cell);
    if (!hit) return;
    if (hit[2] !== undefined) preview.append(this.path(hit[0], hit[2]));
    preview.append(this.face.ghost(hit, this.choices));
  }

  path(from, to) {
    const [[x1, y1], [x2, y2]] = [this.face.centre(from), this.face.centre(to)];
    return svg("line", { class: "path", x1, y1, x2, y2 });
  }

  focus(cell) {
    for (const hit of this.layers.hits.children) hit.setAttribute("tabindex", Number(hit.dataset.cell) === cell ? 0 : -1);
    this.layers.hits.querySelector(`[data-cell="${cell}"]`)?.focus({ preventScroll: this.zoom === 1 });
  }

  key(event) {
    const from = event.target.dataset?.cell;
    const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (this.hits.size === 0 && !this.waits) return; // else arrows stay on the board, also while somebody else moves
    if (from === undefined) {
      if (!steps[event.key]) return;
      this.focus(this.entry());
    } else if (event.key === "Enter" || event.key === " ") this.play(this.hits.get(Number(from))[1]);
    else if (steps[event.key]) {
      const to = this.nearest(Number(from), steps[event.key]);
      if (to !== null) this.focus(to);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Return what can be touched nearest in a direction, counting what lies aside twice. */
  nearest(from, [dx, dy]) {
    const [fx, fy] = this.face.centre(from);
    let best = null, least = Infinity;
    for (const cell of this.hits.keys()) {
      const [cx, cy] = this.face.centre(cell);
      const x = cx - fx, y = cy - fy;
      const ahead = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
      if (ahead > 0 && ahead + 2 * aside < least) [best, least] = [cell, ahead + 2 * aside];
    }
    return best;
  }

  /** Let what was played last slide to where it is, or appear. */
  animate({ from, to }) {
    const figure = to !== null && this.layers.stones.querySelector(`[data-cell="${to}"] .stone`);
    if (!figure || still()) return;
    const [[x1, y1], [x2, y2]] = [this.face.centre(from), this.face.centre(to)];
    const way = Math.abs(x1 - x2) + Math.abs(y1 - y2);
    if (way) {
      figure.parentNode.parentNode.append(figure.parentNode); // above the others while it moves
      figure.animate([{ transform: `translate(${x1 - x2}px, ${y1 - y2}px)` }, { transform: "none" }], { duration: 180 + 3 * way, easing: "cubic-bezier(.3,.1,.2,1)" });
    } else figure.animate([{ transform: "scale(.4)", opacity: 0 }, { transform: "none", opacity: 1 }], { duration: 180, easing: "ease-out" });
  }

  /** Colour moves by what they lose against the best; the less is known of one, the paler it is. */
  drawHeat(moves) {
    const { unit } = this.face;
    return moves.filter(({ cell, sure }) => cell !== null && sure > 0).map(({ cell, grade, sure }) => this.place(cell,
      svg("rect", { class: `warm w${grade}`, x: -unit / 2, y: -unit / 2, width: unit, height: unit, rx: 1.5, opacity: (0.08 + 0.72 * sure).toFixed(2) })));
  }

  /** Point at cells: with numbers, or with nothing but a ring. */
  drawMarks(marks = []) {
    const draw = ({ cell, seat, label, classes = "hinted" }) => this.place(cell, svg("circle", label ? { class: `numbered c${seat + 1}`, r: 3.3 } : { class: classes, r: 4.7 }), svg("text", { y: 1.4 }, label));
    this.layers.marks.replaceChildren(...marks.filter(({ cell }) => cell !== null).map(draw));
  }

  /** Write the mover's chance to win on moves, in per cent; not where next to nothing is known. */
  drawChances(moves) {
    return moves.filter(({ cell, sure, chance, thrown }) => cell !== null && sure >= 0.4 && chance !== undefined && !thrown).map(({ cell, chance }) => this.place(cell,
      svg("text", { class: "chance", y: 1.3 }, String(Math.round(100 * chance)))));
  }

  /** Point at a cell from elsewhere on the page, null for none. */
  point(cell, landing) {
    const { preview } = this.layers;
    preview.replaceChildren();
    if (cell === null || cell === undefined) return;
    if (landing != null && landing !== cell) preview.append(this.path(cell, landing), this.place(landing, svg("circle", { class: "aim", r: 3 })));
    preview.append(this.place(cell, svg("circle", { class: "aim", r: 4.7 })));
  }
}
