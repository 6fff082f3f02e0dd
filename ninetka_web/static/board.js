// The board of any game: clicks, touches, keys, previews, move colours and zoom. The renderer of a game, games/NAME.js,
// defines where the cells are and what they look like; the server decides what is legal.

import { assertDefined, h, svg } from "./dom.js";

/**
 * @import {
 *   Choices, ClickTarget, Config, Heat, Mark, Marks, Move, Position, RendererModule
 * } from "../../tools/page/types"
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
const SMALL_PIXELS = 26; // squares smaller than this need two touches: the first one shows a preview
const LARGE_PIXELS = 44; // size of squares at the largest zoom
const TURNED_KEY = "ninetka-turned";
const reducesMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
/** @type {Map<string, RendererModule>} */
const renderers = new Map();
let lastInput = ""; // what the user used last: "keyboard" or a pointer type, such as "mouse" or "touch"
addEventListener("keydown", () => (lastInput = "keyboard"), true);
addEventListener("pointerdown", (event) => (lastInput = event.pointerType), true);
const usedKeyboard = () => lastInput === "keyboard";
/**
 * Return whether a click is a touch. The press before the click decides, because older browsers (iOS before 18.2,
 * Firefox before 129) give clicks no pointer type. A click by a script or a screen reader has no press and no count.
 * @param {MouseEvent} click
 */
const isTouch = (click) => click.detail > 0 && lastInput === "touch";

/** Load the renderer of a game. @param {string} game */
export async function loadRenderer(game) {
  if (!renderers.has(game)) renderers.set(game, await import(`./games/${game}.js`));
}

/** Return the renderer module of a game, which must have been loaded. @param {string} game */
const rendererOf = (game) => assertDefined(renderers.get(game));

/**
 * Return a small picture of a seat; the renderer of the game must have been loaded.
 * @param {string} game
 * @param {number} seat
 */
export const seatIcon = (game, seat) => rendererOf(game).icon(seat);

/** Return a click target as [cell, action, landing]. @type {(hit: number | ClickTarget) => ClickTarget} */
export const toClickTarget = (hit) => (typeof hit === "number" ? [hit, hit] : hit);

/** Return the cell of an element, NaN if it has none. @param {EventTarget | null} target */
const cellOf = (target) => (target instanceof SVGElement ? Number(target.dataset.cell) : NaN);

export class Board {
  /**
   * @param {string} game
   * @param {Config} config
   * @param {(action: number) => void} onPlay is called with the action that the user chooses, legal or not.
   * @param {(cell: number | null) => void} onIdleClick is called for a click while the user cannot move.
   */
  constructor(game, config, onPlay, onIdleClick) {
    this.turned = localStorage.getItem(TURNED_KEY) === "yes";
    this.make = () => rendererOf(game).make(config, this.turned);
    this.renderer = this.make();
    this.onPlay = onPlay;
    this.onIdleClick = onIdleClick;
    this.zoom = 1;
    this.maxZoom = 1;
    const layer = (/** @type {Layer} */ name) =>
      svg("g", { class: name, "aria-hidden": name === "hits" ? null : "true" });
    this.layers = /** @type {Record<Layer, SVGGElement>} */ (
      Object.fromEntries(LAYERS.map((name) => [name, layer(name)]))
    );
    const { renderer } = this;
    this.ground = svg("g", { "aria-hidden": "true" }, ...renderer.ground());
    this.svg = svg(
      "svg",
      {
        class: "board",
        viewBox: renderer.box.join(" "),
        role: "group",
        "aria-label": "Board",
        "aria-describedby": "board-text",
        tabindex: -1,
      },
      svg("defs", {}, ...renderer.defs()),
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
    /** @type {Map<number, ClickTarget>} */
    this.targets = new Map();
    this.isPlaying = false; // whether the user has a seat and may have to wait for their turn
    /** @type {number | null} */
    this.previewedCell = null; // the cell that a first touch has chosen
    /** @type {number | null} */
    this.lastCell = null; // the cell that was played or focused last
  }

  listen() {
    const { hits } = this.layers;
    hits.addEventListener("pointerover", (event) => this.showPreview(cellOf(event.target)));
    hits.addEventListener("pointerout", () => this.showPreview(null));
    hits.addEventListener("focusout", () => this.showPreview(null));
    hits.addEventListener("focusin", (event) => {
      this.lastCell = cellOf(event.target);
      if (usedKeyboard()) this.showPreview(this.lastCell);
    });
    this.svg.addEventListener("click", (event) => this.handleClick(event));
    this.svg.addEventListener("keydown", (event) => this.handleKey(event));
    new ResizeObserver(() => this.fit()).observe(this.holder);
  }

  /** Show the board from the other side; the caller draws it again. */
  turn() {
    this.turned = !this.turned;
    localStorage.setItem(TURNED_KEY, this.turned ? "yes" : "no");
    this.renderer = this.make();
    this.ground.replaceChildren(...this.renderer.ground());
    this.layers.hits.replaceChildren();
  }

  /** The size of a square in pixels. */
  get pixels() {
    return (this.svg.getBoundingClientRect().width / this.renderer.box[2]) * this.renderer.unit;
  }

  /** Show the zoom buttons if squares are small. */
  fit() {
    const fullSize = (this.holder.clientWidth / this.renderer.box[2]) * this.renderer.unit;
    this.zooms.hidden = fullSize >= 32 || !fullSize;
    if (this.zooms.hidden && this.zoom !== 1) this.setZoom(1);
    this.maxZoom = Math.max(1, LARGE_PIXELS / fullSize);
  }

  /** @param {number} zoom */
  setZoom(zoom) {
    const { holder } = this;
    const x = (holder.scrollLeft + holder.clientWidth / 2) / holder.scrollWidth;
    const y = (holder.scrollTop + holder.clientHeight / 2) / holder.scrollHeight;
    this.zoom = Math.max(1, Math.min(this.maxZoom, zoom));
    this.svg.style.width = `${100 * this.zoom}%`;
    holder.classList.toggle("zoomed", this.zoom > 1);
    holder.scrollTo(x * holder.scrollWidth - holder.clientWidth / 2, y * holder.scrollHeight - holder.clientHeight / 2);
  }

  /**
   * Draw a position.
   * @param {Position} position
   * @param {Choices | null} choices what the user can do; null if nothing.
   * @param {Partial<Marks> & { animate?: boolean, isPlaying?: boolean }} more marks on the board; whether
   *   to animate the last move; whether the user has a seat and may have to wait for their turn.
   */
  draw(position, choices, { heat = [], lost = [], marks = [], animate = false, isPlaying = false } = {}) {
    const { renderer, layers } = this;
    const focused = this.svg.contains(document.activeElement);
    this.choices = choices;
    this.isPlaying = isPlaying;
    this.targets = new Map((choices?.clickable ?? []).map(toClickTarget).map((hit) => [hit[0], hit]));
    this.previewedCell = null;
    layers.under.replaceChildren(...renderer.under(position));
    layers.heat.replaceChildren(...this.drawHeat(heat));
    layers.trace.replaceChildren(...renderer.trace(position));
    layers.stones.replaceChildren(...renderer.stones(position));
    layers.over.replaceChildren(...(renderer.over?.(position) ?? []));
    const hints = choices ? [...this.targets.values()].map((hit) => renderer.clickMark(hit, choices)) : [];
    layers.hints.replaceChildren(...hints.filter((hint) => hint !== null));
    const crosses = lost.map((cell) => this.place(cell, svg("path", { class: "thrown", d: "M-4.6 4.6 L4.6 -4.6" })));
    layers.percents.replaceChildren(...this.drawChances(heat), ...crosses);
    this.drawMarks(marks);
    layers.preview.replaceChildren();
    this.drawHitAreas(focused);
    this.text.replaceChildren(...renderer.describe(position).map((line) => h("li", {}, line)));
    if (animate && position.last) this.animate(position.last);
  }

  /**
   * @param {number} cell
   * @param {SVGElement[]} children
   */
  place(cell, ...children) {
    const [x, y] = this.renderer.centre(cell);
    return svg("g", { transform: `translate(${x} ${y})` }, ...children);
  }

  /**
   * Draw the hit areas. One of them is in the tab order, and the arrow keys move to the others. The hit area of a cell
   * that stays clickable is reused, so that it keeps the focus. If the focused hit area disappears, the nearest one
   * gets the focus as soon as there is one.
   * @param {boolean} focused
   */
  drawHitAreas(focused) {
    const entry = this.entryCell();
    const oldAreas = new Map([...this.layers.hits.children].map((area) => [cellOf(area), area]));
    for (const hit of this.targets.values()) {
      const area = oldAreas.get(hit[0]) ?? this.makeHitArea(hit[0]);
      area.setAttribute("aria-label", this.label(hit));
      area.setAttribute("tabindex", hit[0] === entry ? "0" : "-1");
      oldAreas.delete(hit[0]);
    }
    for (const area of oldAreas.values()) area.remove();
    const { activeElement } = document;
    if (!focused || (activeElement !== this.svg && this.svg.contains(activeElement))) return;
    this.svg.focus({ preventScroll: true });
    if (entry === null || !usedKeyboard()) return;
    // Wait for a frame, because moving the focus forces a layout.
    requestAnimationFrame(() => {
      if (document.activeElement === this.svg) this.focus(this.entryCell());
    });
  }

  /** @param {number} cell */
  makeHitArea(cell) {
    const { unit } = this.renderer;
    const [x, y] = this.renderer.centre(cell);
    const box = { x: x - unit / 2, y: y - unit / 2, width: unit, height: unit, rx: 1.5 };
    return this.layers.hits.appendChild(svg("rect", { class: "hit", ...box, role: "button", "data-cell": cell }));
  }

  /** Return the cell that Tab focuses: the last used cell or, if it is not clickable, the nearest clickable cell. */
  entryCell() {
    const cells = [...this.targets.keys()];
    if (!cells.length) return null;
    if (this.lastCell === null) return cells[0];
    if (this.targets.has(this.lastCell)) return this.lastCell;
    const [x, y] = this.renderer.centre(this.lastCell);
    /** @param {number} cell */
    const distance = (cell) => {
      const [cx, cy] = this.renderer.centre(cell);
      return Math.hypot(cx - x, cy - y);
    };
    return cells.reduce((best, cell) => (distance(cell) < distance(best) ? cell : best));
  }

  /** Return the accessible name of a hit area. @param {ClickTarget} hit */
  label([cell, , landing]) {
    const { name } = this.renderer;
    const text = `${name(cell)}: ${this.choices?.click_text}`;
    return landing === undefined ? text : `${text} to ${name(landing)}`;
  }

  /**
   * Play the clicked cell. A touch first shows a preview if the stone would slide or if squares are small.
   * @param {MouseEvent} event
   */
  handleClick(event) {
    if (event.detail > 1 && !isTouch(event)) return; // a double click counts as one click
    const hit = this.targets.get(cellOf(event.target));
    if (!hit) {
      const place = this.cellAt(event);
      // Send illegal actions too: the server answers with the reason.
      if (this.choices && place !== null) this.onPlay(place);
      else if (!this.choices) this.onIdleClick(place);
      return;
    }
    const needsPreview = isTouch(event) && (hit[2] !== undefined || this.pixels < SMALL_PIXELS);
    if (needsPreview && this.previewedCell !== hit[0]) {
      this.previewedCell = hit[0];
      this.showPreview(hit[0]);
    } else this.onPlay(hit[1]);
  }

  /** Return the cell under the pointer, null for none. @param {MouseEvent} event */
  cellAt(event) {
    const { renderer } = this;
    const box = this.svg.getBoundingClientRect();
    const scale = renderer.box[2] / box.width;
    const x = (event.clientX - box.left) * scale + renderer.box[0];
    const y = (event.clientY - box.top) * scale + renderer.box[1];
    for (let cell = 0; cell < renderer.numCells; cell++) {
      const [cx, cy] = renderer.centre(cell);
      if (Math.abs(x - cx) < renderer.unit / 2 && Math.abs(y - cy) < renderer.unit / 2) return cell;
    }
    return null;
  }

  /** Show what a click on a cell would do; null shows nothing. @param {number | null} cell */
  showPreview(cell) {
    const { preview } = this.layers;
    preview.replaceChildren();
    const hit = cell === null ? undefined : this.targets.get(cell);
    if (!hit || !this.choices) return;
    if (hit[2] !== undefined) preview.append(this.path(hit[0], hit[2]));
    preview.append(this.renderer.preview(hit, this.choices));
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  path(from, to) {
    const [x1, y1] = this.renderer.centre(from);
    const [x2, y2] = this.renderer.centre(to);
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
  handleKey(event) {
    const from = cellOf(event.target);
    /** @type {Record<string, [number, number] | undefined>} */
    const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    const step = steps[event.key];
    if (this.targets.size === 0 && !this.isPlaying) return; // arrow keys of a waiting user must not change the ply
    if (Number.isNaN(from)) {
      if (!step) return;
      this.focus(this.entryCell());
    } else if (event.key === "Enter" || event.key === " ") {
      const hit = this.targets.get(from);
      if (hit) this.onPlay(hit[1]);
    } else if (step) {
      const to = this.nearest(from, step);
      if (to !== null) this.focus(to);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Return the nearest clickable cell in a direction; distances across the direction count twice.
   * @param {number} from
   * @param {[number, number]} direction
   */
  nearest(from, [dx, dy]) {
    const [fx, fy] = this.renderer.centre(from);
    let best = null;
    let minDistance = Infinity;
    for (const cell of this.targets.keys()) {
      const [cx, cy] = this.renderer.centre(cell);
      const x = cx - fx;
      const y = cy - fy;
      const ahead = x * dx + y * dy;
      const distance = ahead + 2 * (Math.abs(x * dy) + Math.abs(y * dx));
      if (ahead > 0 && distance < minDistance) [best, minDistance] = [cell, distance];
    }
    return best;
  }

  /** Animate the last move: the stone slides to its cell or appears there. @param {Move} move */
  animate({ from, to }) {
    if (from === null || to === null) return;
    const figure = this.layers.stones.querySelector(`[data-cell="${to}"] .stone`);
    if (!figure || reducesMotion()) return;
    const [x1, y1] = this.renderer.centre(from);
    const [x2, y2] = this.renderer.centre(to);
    const distance = Math.abs(x1 - x2) + Math.abs(y1 - y2);
    if (distance) {
      const group = assertDefined(figure.parentElement);
      group.parentElement?.append(group); // above the others while it moves
      figure.animate([{ transform: `translate(${x1 - x2}px, ${y1 - y2}px)` }, { transform: "none" }], {
        duration: 180 + 3 * distance,
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
   * Colour moves by what they lose compared with the best move; less certain moves are paler.
   * @param {Heat[]} moves
   */
  drawHeat(moves) {
    const { unit } = this.renderer;
    const box = { x: -unit / 2, y: -unit / 2, width: unit, height: unit, rx: 1.5 };
    return moves.flatMap(({ cell, grade, sure }) => {
      if (cell === null || !(sure > 0)) return [];
      const opacity = (0.08 + 0.72 * sure).toFixed(2);
      return [this.place(cell, svg("rect", { class: `warm w${grade}`, ...box, opacity }))];
    });
  }

  /** Mark cells with a number or a ring. @param {Mark[]} marks */
  drawMarks(marks) {
    const draw = (/** @type {Mark} */ { cell, seat, label, classes = "hinted" }) => {
      const isNumber = label !== "" && seat !== undefined;
      const attributes = isNumber ? { class: `numbered c${seat + 1}`, r: 3.3 } : { class: classes, r: 4.7 };
      return this.place(cell, svg("circle", attributes), svg("text", { y: 1.4 }, label));
    };
    this.layers.marks.replaceChildren(...marks.map(draw));
  }

  /**
   * Write the mover's win probability on moves, in per cent; uncertain moves get none.
   * @param {Heat[]} moves
   */
  drawChances(moves) {
    return moves.flatMap(({ cell, sure, chance, worsensResult }) => {
      if (cell === null || !(sure >= 0.4) || chance === undefined || worsensResult) return [];
      return [this.place(cell, svg("text", { class: "chance", y: 1.3 }, String(Math.round(100 * chance))))];
    });
  }

  /**
   * Mark a cell that an element elsewhere on the page refers to; null clears the mark.
   * @param {number | null} cell
   * @param {number | null} landing
   */
  pointAt(cell, landing = null) {
    const { preview } = this.layers;
    preview.replaceChildren();
    if (cell === null) return;
    if (landing !== null && landing !== cell) {
      preview.append(this.path(cell, landing), this.place(landing, svg("circle", { class: "aim", r: 3 })));
    }
    preview.append(this.place(cell, svg("circle", { class: "aim", r: 4.7 })));
  }
}
