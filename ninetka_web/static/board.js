// The board, whatever the game: what can be touched, by hand or by key, previews, heat, zoom. A drawing file of the
// game, games/NAME.js, says where the cells are and what they look like. Nothing is decided here.

import { h, known, svg } from "./dom.js";

/**
 * @import { Choices, Config, FaceModule, Heat, Hit, Mark, Marks, Move, Position } from "../../tools/page/types"
 * @typedef {(typeof LAYERS)[number]} Layer
 */

const LAYERS = /** @type {const} */ ([
  "under",
  "heat",
  "trace",
  "stones",
  "over",
  "hints",
  "percents",
  "marks",
  "preview",
  "hits",
]);
const SMALL = 26; // pixels a square, below which a finger sees first where it would play
const LARGE = 44;
const TURNED = "ninetka-turned";
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
/** @type {Map<string, FaceModule>} */
const faces = new Map();
let byKey = false; // whether the keyboard was used last
addEventListener("keydown", () => (byKey = true), true);
addEventListener("pointerdown", () => (byKey = false), true);

/** Load a game's drawing file. @param {string} game */
export async function loadFace(game) {
  if (!faces.has(game)) faces.set(game, await import(`./games/${game}.js`));
}

/** The drawing file of a game that was loaded. @param {string} game */
const faceOf = (game) => known(faces.get(game));

/**
 * A small picture of a seat of a game that was loaded.
 * @param {string} game
 * @param {number} seat
 */
export const seatIcon = (game, seat) => faceOf(game).icon(seat);

/** What can be clicked as [cell, action, landing]. @type {(hit: number | Hit) => Hit} */
export const hitOf = (hit) => (typeof hit === "number" ? [hit, hit] : hit);

/** The cell of an element, NaN if it has none. @param {EventTarget | null} target */
const cellOf = (target) => (target instanceof SVGElement ? Number(target.dataset.cell) : NaN);

export class Board {
  /**
   * @param {string} game
   * @param {Config} config
   * @param {(action: number) => void} play is called with the action that a person chooses, be it legal or not.
   * @param {(cell: number | null) => void} idle is called by a click when nothing can be played.
   */
  constructor(game, config, play, idle) {
    this.turned = localStorage.getItem(TURNED) === "yes";
    this.make = () => faceOf(game).make(config, this.turned);
    this.face = this.make();
    this.play = play;
    this.idle = idle;
    this.zoom = 1;
    this.most = 1; // how far it can be zoomed
    const layer = (/** @type {Layer} */ name) =>
      svg("g", { class: name, "aria-hidden": name === "hits" ? null : "true" });
    this.layers = /** @type {Record<Layer, SVGGElement>} */ (
      Object.fromEntries(LAYERS.map((name) => [name, layer(name)]))
    );
    const { face } = this;
    this.ground = svg("g", { "aria-hidden": "true" }, ...face.ground());
    this.svg = svg(
      "svg",
      {
        class: "board",
        viewBox: face.box.join(" "),
        role: "group",
        "aria-label": "Board",
        "aria-describedby": "board-text",
        tabindex: -1,
      },
      svg("defs", {}, ...face.defs()),
      this.ground,
      ...Object.values(this.layers),
    );
    this.text = h("ul", { class: "unseen", id: "board-text" });
    this.holder = h("div", { class: "holder" }, this.svg);
    /** @type {(id: string, label: string, title: string, change: () => number) => HTMLElement} */
    const button = (id, label, title, change) => {
      const click = () => this.setZoom(change());
      return h("button", { type: "button", class: "quiet", id, title, "aria-label": title, click }, label);
    };
    this.zooms = h(
      "div",
      { class: "zooms", hidden: true },
      button("zoom-out", "−", "Smaller", () => this.zoom / 1.4),
      button("zoom-in", "+", "Larger", () => this.zoom * 1.4),
    );
    this.element = h("div", { class: "board-box" }, this.holder, this.zooms);
    this.listen();
    /** @type {Choices | null} */
    this.choices = null;
    /** @type {Map<number, Hit>} */
    this.hits = new Map();
    this.waits = false;
    /** @type {number | null} */
    this.chosen = null;
    /** @type {number | null} */
    this.at = null; // the cell that was played or focused last
  }

  listen() {
    const { hits } = this.layers;
    hits.addEventListener("pointerover", (event) => this.showPreview(cellOf(event.target)));
    hits.addEventListener("pointerout", () => this.showPreview(null));
    hits.addEventListener("focusout", () => this.showPreview(null));
    hits.addEventListener("focusin", (event) => {
      this.at = cellOf(event.target);
      if (byKey) this.showPreview(this.at);
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

  /** @param {number} zoom */
  setZoom(zoom) {
    const { holder } = this;
    const x = (holder.scrollLeft + holder.clientWidth / 2) / holder.scrollWidth;
    const y = (holder.scrollTop + holder.clientHeight / 2) / holder.scrollHeight;
    this.zoom = Math.max(1, Math.min(this.most, zoom));
    this.svg.style.width = `${100 * this.zoom}%`;
    holder.classList.toggle("zoomed", this.zoom > 1);
    holder.scrollTo(x * holder.scrollWidth - holder.clientWidth / 2, y * holder.scrollHeight - holder.clientHeight / 2);
  }

  /**
   * Draw a position.
   * @param {Position} position
   * @param {Choices | null} choices what the person may do; null for nothing.
   * @param {Partial<Marks> & { animate?: boolean, waits?: boolean }} more drawn in addition to the position: `animate` shows the last
   *   move; `waits`: the person plays, and may have to wait for their turn.
   */
  draw(position, choices, { heat = [], lost = [], marks = [], animate = false, waits = false } = {}) {
    const { face, layers } = this;
    const focused = this.svg.contains(document.activeElement);
    this.choices = choices;
    this.waits = waits;
    this.hits = new Map((choices?.hits ?? []).map(hitOf).map((hit) => [hit[0], hit]));
    this.chosen = null;
    layers.under.replaceChildren(...face.under(position));
    layers.heat.replaceChildren(...this.drawHeat(heat));
    layers.trace.replaceChildren(...face.trace(position));
    layers.stones.replaceChildren(...face.stones(position));
    layers.over.replaceChildren(...(face.over?.(position) ?? []));
    const hints = choices ? [...this.hits.values()].map((hit) => face.hint(hit, choices)) : [];
    layers.hints.replaceChildren(...hints.filter((hint) => hint !== null));
    const crosses = lost.map((cell) => this.place(cell, svg("path", { class: "thrown", d: "M-4.6 4.6 L4.6 -4.6" })));
    layers.percents.replaceChildren(...this.drawChances(heat), ...crosses);
    this.drawMarks(marks);
    layers.preview.replaceChildren();
    this.drawHits(focused);
    this.text.replaceChildren(...face.describe(position).map((line) => h("li", {}, line)));
    if (animate && position.last) this.animate(position.last);
  }

  /**
   * @param {number} cell
   * @param {SVGElement[]} children
   */
  place(cell, ...children) {
    const [x, y] = this.face.centre(cell);
    return svg("g", { transform: `translate(${x} ${y})` }, ...children);
  }

  /**
   * Draw what can be touched; one of them is in the tab order, the arrows go to the others. What can be touched still
   * stays the same element, so the focus stays with it; else it goes to what is nearest, as soon as there is something.
   * @param {boolean} focused
   */
  drawHits(focused) {
    const entry = this.entry();
    const before = new Map([...this.layers.hits.children].map((each) => [cellOf(each), each]));
    for (const hit of this.hits.values()) {
      const each = before.get(hit[0]) ?? this.makeHit(hit[0]);
      each.setAttribute("aria-label", this.label(hit));
      each.setAttribute("tabindex", hit[0] === entry ? "0" : "-1");
      before.delete(hit[0]);
    }
    for (const each of before.values()) each.remove();
    const held = document.activeElement;
    if (!focused || (held !== this.svg && this.svg.contains(held))) return;
    this.svg.focus({ preventScroll: true });
    if (entry === null || !byKey) return;
    // Later, because the browser lays everything out before it moves the focus.
    requestAnimationFrame(() => {
      if (document.activeElement === this.svg) this.focus(this.entry());
    });
  }

  /** @param {number} cell */
  makeHit(cell) {
    const { unit } = this.face;
    const [x, y] = this.face.centre(cell);
    const box = { x: x - unit / 2, y: y - unit / 2, width: unit, height: unit, rx: 1.5 };
    return this.layers.hits.appendChild(svg("rect", { class: "hit", ...box, role: "button", "data-cell": cell }));
  }

  /** The cell where the keyboard comes to the board: where it was last, or next to there. */
  entry() {
    const cells = [...this.hits.keys()];
    if (!cells.length) return null;
    if (this.at === null) return cells[0];
    if (this.hits.has(this.at)) return this.at;
    const [x, y] = this.face.centre(this.at);
    /** @param {number} cell */
    const away = (cell) => {
      const [cx, cy] = this.face.centre(cell);
      return Math.hypot(cx - x, cy - y);
    };
    return cells.reduce((best, cell) => (away(cell) < away(best) ? cell : best));
  }

  /** @param {Hit} hit */
  label([cell, , landing]) {
    const { name } = this.face;
    const does = `${name(cell)}: ${this.choices?.verb}`;
    return landing === undefined ? does : `${does} to ${name(landing)}`;
  }

  /**
   * Play a cell; a finger sees first where what it plays would end, or where it is if that is small.
   * @param {PointerEvent} event
   */
  click(event) {
    if (event.detail > 1 && event.pointerType !== "touch") return; // a double click is one
    const hit = this.hits.get(cellOf(event.target));
    if (!hit) {
      const place = this.cellAt(event);
      // What cannot be played is played as well: the server says why it cannot be.
      if (this.choices && place !== null) this.play(place);
      else if (!this.choices) this.idle(place);
      return;
    }
    const unsure = event.pointerType === "touch" && (hit[2] !== undefined || this.pixels < SMALL);
    if (unsure && this.chosen !== hit[0]) {
      this.chosen = hit[0];
      this.showPreview(hit[0]);
    } else this.play(hit[1]);
  }

  /** The cell under the pointer, null for none. @param {PointerEvent} event */
  cellAt(event) {
    const { face } = this;
    const box = this.svg.getBoundingClientRect();
    const scale = face.box[2] / box.width;
    const x = (event.clientX - box.left) * scale + face.box[0];
    const y = (event.clientY - box.top) * scale + face.box[1];
    for (let cell = 0; cell < face.places; cell++) {
      const [cx, cy] = face.centre(cell);
      if (Math.abs(x - cx) < face.unit / 2 && Math.abs(y - cy) < face.unit / 2) return cell;
    }
    return null;
  }

  /** @param {number | null} cell */
  showPreview(cell) {
    const { preview } = this.layers;
    preview.replaceChildren();
    const hit = cell === null ? undefined : this.hits.get(cell);
    if (!hit || !this.choices) return;
    if (hit[2] !== undefined) preview.append(this.path(hit[0], hit[2]));
    preview.append(this.face.ghost(hit, this.choices));
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  path(from, to) {
    const [x1, y1] = this.face.centre(from);
    const [x2, y2] = this.face.centre(to);
    return svg("line", { class: "path", x1, y1, x2, y2 });
  }

  /** @param {number | null} cell */
  focus(cell) {
    for (const hit of this.layers.hits.children) hit.setAttribute("tabindex", cellOf(hit) === cell ? "0" : "-1");
    /** @type {SVGElement | null} */
    const hit = this.layers.hits.querySelector(`[data-cell="${cell}"]`);
    hit?.focus({ preventScroll: this.zoom === 1 });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const from = cellOf(event.target);
    /** @type {Record<string, [number, number] | undefined>} */
    const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    const step = steps[event.key];
    if (this.hits.size === 0 && !this.waits) return; // else arrows stay on the board, also while somebody else moves
    if (Number.isNaN(from)) {
      if (!step) return;
      this.focus(this.entry());
    } else if (event.key === "Enter" || event.key === " ") {
      const hit = this.hits.get(from);
      if (hit) this.play(hit[1]);
    } else if (step) {
      const to = this.nearest(from, step);
      if (to !== null) this.focus(to);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Return what can be touched nearest in a direction, counting what lies aside twice.
   * @param {number} from
   * @param {[number, number]} direction
   */
  nearest(from, [dx, dy]) {
    const [fx, fy] = this.face.centre(from);
    let best = null;
    let least = Infinity;
    for (const cell of this.hits.keys()) {
      const [cx, cy] = this.face.centre(cell);
      const x = cx - fx;
      const y = cy - fy;
      const ahead = x * dx + y * dy;
      const away = ahead + 2 * (Math.abs(x * dy) + Math.abs(y * dx));
      if (ahead > 0 && away < least) [best, least] = [cell, away];
    }
    return best;
  }

  /** Let what was played last slide to where it is, or appear. @param {Move} move */
  animate({ from, to }) {
    if (from === null || to === null) return;
    const figure = this.layers.stones.querySelector(`[data-cell="${to}"] .stone`);
    if (!figure || still()) return;
    const [x1, y1] = this.face.centre(from);
    const [x2, y2] = this.face.centre(to);
    const way = Math.abs(x1 - x2) + Math.abs(y1 - y2);
    if (way) {
      const group = known(figure.parentElement);
      group.parentElement?.append(group); // above the others while it moves
      figure.animate([{ transform: `translate(${x1 - x2}px, ${y1 - y2}px)` }, { transform: "none" }], {
        duration: 180 + 3 * way,
        easing: "cubic-bezier(.3,.1,.2,1)",
      });
    } else {
      figure.animate(
        [
          { transform: "scale(.4)", opacity: 0 },
          { transform: "none", opacity: 1 },
        ],
        { duration: 180, easing: "ease-out" },
      );
    }
  }

  /**
   * Colour moves by what they lose against the best; the less is known of one, the paler it is.
   * @param {Heat[]} moves
   */
  drawHeat(moves) {
    const { unit } = this.face;
    const box = { x: -unit / 2, y: -unit / 2, width: unit, height: unit, rx: 1.5 };
    return moves.flatMap(({ cell, grade, sure }) => {
      if (cell === null || !(sure > 0)) return [];
      const opacity = (0.08 + 0.72 * sure).toFixed(2);
      return [this.place(cell, svg("rect", { class: `warm w${grade}`, ...box, opacity }))];
    });
  }

  /** Point at cells: with numbers, or with nothing but a ring. @param {Mark[]} marks */
  drawMarks(marks) {
    const draw = (/** @type {Mark} */ { cell, seat, label, classes = "hinted" }) => {
      const isNumber = label !== "" && seat !== undefined;
      const look = isNumber ? { class: `numbered c${seat + 1}`, r: 3.3 } : { class: classes, r: 4.7 };
      return this.place(cell, svg("circle", look), svg("text", { y: 1.4 }, label));
    };
    this.layers.marks.replaceChildren(...marks.map(draw));
  }

  /**
   * Write the mover's chance to win on moves, in per cent; not where next to nothing is known.
   * @param {Heat[]} moves
   */
  drawChances(moves) {
    return moves.flatMap(({ cell, sure, chance, thrown }) => {
      if (cell === null || !(sure >= 0.4) || chance === undefined || thrown) return [];
      return [this.place(cell, svg("text", { class: "chance", y: 1.3 }, String(Math.round(100 * chance))))];
    });
  }

  /**
   * Point at a cell from elsewhere on the page, null for none.
   * @param {number | null} cell
   * @param {number | null} landing
   */
  point(cell, landing = null) {
    const { preview } = this.layers;
    preview.replaceChildren();
    if (cell === null) return;
    if (landing !== null && landing !== cell) {
      preview.append(this.path(cell, landing), this.place(landing, svg("circle", { class: "aim", r: 3 })));
    }
    preview.append(this.place(cell, svg("circle", { class: "aim", r: 4.7 })));
  }
}
