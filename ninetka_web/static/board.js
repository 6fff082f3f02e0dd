// The board, drawn as SVG: ten units a square. It shows a position and asks for moves; it decides nothing.

import { h, svg } from "./dom.js";
import { COLOURS, NEUTRAL, PASS, SHAPES, SIZE, capital, columnOf, isBlocked, isEdge, rowOf, squareName } from "./rules.js";

const UNIT = 10;
const centre = (square) => [columnOf(square) * UNIT + 5, rowOf(square) * UNIT + 5];
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** The mark that tells stones apart without colour. */
function mark(code, attributes = { class: "mark" }) {
  const shapes = {
    1: () => svg("circle", { ...attributes, r: 1.25 }),
    2: () => svg("path", { ...attributes, d: "M0 -1.7 L1.65 1.15 L-1.65 1.15 Z" }),
    3: () => svg("path", { ...attributes, d: "M-1.2 -1.2 H1.2 V1.2 H-1.2 Z" }),
    4: () => svg("path", { ...attributes, d: "M0 -1.85 L1.5 0 L0 1.85 L-1.5 0 Z" }),
    5: () => svg("path", { ...attributes, d: "M-1.3 -1.3 L1.3 1.3 M1.3 -1.3 L-1.3 1.3" }),
  };
  return shapes[code]();
}

/** A stone around the origin. */
function stone(code) {
  return svg("g", { class: `figure s${code}` },
    svg("circle", { class: "shadow", cx: 0.25, cy: 0.5, r: 4 }), svg("circle", { class: "body", r: 4 }),
    svg("ellipse", { class: "gleam", cx: -1.2, cy: -1.7, rx: 1.7, ry: 1.1 }), mark(code));
}

/** The same as a copy of the one that the board defines, which is quicker to make. */
const copyOf = (code, classes = "") => svg("use", { class: `stone ${classes}`, href: `#stone-${code}` });

/** A small picture of a seat's stone. */
export function stoneIcon(seat) {
  return svg("svg", { class: "icon", viewBox: "-4.6 -4.4 9.2 9.4", role: "img", "aria-label": `${COLOURS[seat]} (${SHAPES[seat]})` }, stone(seat + 1));
}

const at = (square, ...children) => {
  const [x, y] = centre(square);
  return svg("g", { transform: `translate(${x} ${y})` }, ...children);
};

export class Board {
  /** @param {(action: number) => void} play is called with the action that a person chooses. */
  constructor(play) {
    this.play = play;
    this.layers = Object.fromEntries(["owners", "heat", "trace", "stones", "hints", "percents", "preview", "hits"].map((name) => [name, svg("g", { class: name })]));
    const { owners, ...others } = this.layers;
    this.element = svg("svg", { class: "board", viewBox: "-6 -6 122 122", role: "group", "aria-label": "Board", "aria-describedby": "board-text" },
      svg("defs", {}, [1, 2, 3, 4, 5].map((code) => svg("g", { id: `stone-${code}` }, stone(code)))),
      svg("rect", { class: "frame", x: -5.6, y: -5.6, width: 121.2, height: 121.2, rx: 4 }), ...names(), ...wells(),
      svg("rect", { class: "well", x: 9.3, y: 9.3, width: 91.4, height: 91.4, rx: 1.5 }), owners, ...gridLines(), ...Object.values(others));
    this.text = h("ul", { class: "unseen", id: "board-text" });
    this.element.addEventListener("keydown", (event) => this.key(event));
    const { hits } = this.layers;
    const on = (names, act) => names.forEach((name) => hits.addEventListener(name, (event) => act(Number(event.target.dataset.square), event)));
    on(["pointerover", "focusin"], (square) => this.showPreview(square));
    on(["pointerout", "focusout"], () => this.showPreview(null));
    on(["click"], (square, event) => this.choose(square, event.pointerType === "touch"));
    this.chosen = null;
  }

  /**
   * Draw a position.
   * @param {object} position as `positionAt` gives it.
   * @param {object} options legal: [[action, landing]] that the person may play; heat: candidates; lost: moves that throw a win
   *   away; animate: show the last move.
   */
  draw(position, { legal = [], heat = [], lost = [], animate = false } = {}) {
    const focused = this.layers.hits.contains(document.activeElement) ? Number(document.activeElement.dataset.square) : null;
    this.position = position;
    this.legal = new Map(legal.filter(([action]) => action !== PASS));
    this.chosen = null;
    const { owners, heat: heatLayer, percents, trace, stones, hints, preview } = this.layers;
    owners.replaceChildren(...position.owners.map(drawSection));
    heatLayer.replaceChildren(...drawHeat(heat));
    percents.replaceChildren(...drawChances(heat, position), ...lost.map(drawLost));
    trace.replaceChildren(...drawTrace(position));
    stones.replaceChildren(...this.drawStones(position));
    hints.replaceChildren(...[...this.legal].map(([square]) => this.drawHint(square)));
    preview.replaceChildren();
    this.drawHits(focused);
    this.text.replaceChildren(...describe(position));
    if (animate && position.last) this.animate(position.last);
  }

  drawStones({ board, phase, over }) {
    return [...board.keys()].filter((square) => board[square]).map((square) => {
      const shut = phase === "movement" && isEdge(square) && isBlocked(board, square);
      const group = at(square, copyOf(board[square], shut ? "shut" : ""), shut && !over && bar(square));
      group.dataset.square = square;
      return group;
    });
  }

  drawHint(square) {
    const movement = this.position.phase === "movement";
    const code = this.position.phase === "neutral" ? NEUTRAL : this.position.toMove + 1;
    if (!movement) return at(square, svg("circle", { class: `dot c${code}`, r: 1.1 }));
    return at(square, svg("circle", { class: "ring", r: 4.5 }), arrow(square));
  }

  /** Draw what can be touched; one of them is in the tab order, the arrows go to the others. */
  drawHits(focused) {
    const squares = [...this.legal.keys()];
    const entry = squares.includes(focused) ? focused : squares[0];
    this.layers.hits.replaceChildren(...squares.map((square) => {
      const [x, y] = centre(square);
      return svg("rect", {
        class: "hit", x: x - 5, y: y - 5, width: UNIT, height: UNIT, rx: 1.5, role: "button", tabindex: square === entry ? 0 : -1,
        "aria-label": this.label(square), "data-square": square,
      });
    }));
    // Later, because the browser lays everything out before it moves the focus.
    if (focused !== null && entry !== undefined) requestAnimationFrame(() => this.focus(entry));
  }

  label(square) {
    const landing = this.legal.get(square);
    if (this.position.phase === "movement") return `${squareName(square)}: slide to ${squareName(landing)}`;
    return `${squareName(square)}: place ${this.position.phase === "neutral" ? "a neutral stone" : "your stone"}`;
  }

  /** Play a square; a finger sees first where a slide would end, and plays with a second tap. */
  choose(square, byFinger) {
    if (byFinger && this.position.phase === "movement" && this.chosen !== square) {
      this.chosen = square;
      this.showPreview(square);
      return;
    }
    this.play(square);
  }

  showPreview(square) {
    const { preview } = this.layers;
    preview.replaceChildren();
    if (square === null || !this.legal.has(square)) return;
    const landing = this.legal.get(square);
    const code = this.position.phase === "neutral" ? NEUTRAL : this.position.toMove + 1;
    if (landing !== square) {
      const [[x1, y1], [x2, y2]] = [centre(square), centre(landing)];
      preview.append(svg("line", { class: "path", x1, y1, x2, y2 }));
    }
    preview.append(at(landing, copyOf(code, "ghost")));
  }

  focus(square) {
    for (const hit of this.layers.hits.children) hit.setAttribute("tabindex", Number(hit.dataset.square) === square ? 0 : -1);
    this.layers.hits.querySelector(`[data-square="${square}"]`)?.focus({ preventScroll: true });
  }

  key(event) {
    const from = Number(event.target.dataset?.square);
    if (Number.isNaN(from)) return;
    const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (event.key === "Enter" || event.key === " ") this.play(from);
    else if (steps[event.key]) {
      const to = nearest(from, steps[event.key], [...this.legal.keys()]);
      if (to !== null) this.focus(to);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Let the last stone slide to where it is, or appear. */
  animate({ action, to }) {
    const figure = this.layers.stones.querySelector(`[data-square="${to}"] .stone`);
    if (!figure || still()) return;
    const [[x1, y1], [x2, y2]] = [centre(action), centre(to)];
    const way = Math.abs(x1 - x2) + Math.abs(y1 - y2);
    figure.parentNode.parentNode.append(figure.parentNode); // above the others while it moves
    if (way) figure.animate([{ transform: `translate(${x1 - x2}px, ${y1 - y2}px)` }, { transform: "none" }], { duration: 180 + 3 * way, easing: "cubic-bezier(.3,.1,.2,1)" });
    else figure.animate([{ transform: "scale(.4)", opacity: 0 }, { transform: "none", opacity: 1 }], { duration: 180, easing: "ease-out" });
  }

  /** Point at a square from elsewhere on the page, null for none. */
  point(action, landing) {
    const { preview } = this.layers;
    preview.replaceChildren();
    if (action === null || action === PASS) return;
    const [x1, y1] = centre(action);
    const [x2, y2] = centre(landing);
    if (landing !== action) preview.append(svg("line", { class: "path", x1, y1, x2, y2 }), at(landing, svg("circle", { class: "aim", r: 3 })));
    preview.append(at(action, svg("circle", { class: "aim", r: 4.7 })));
  }
}

/** Return the square of a list that is nearest in a direction, counting what lies aside twice. */
function nearest(from, [dx, dy], squares) {
  let best = null, least = Infinity;
  for (const square of squares) {
    const x = columnOf(square) - columnOf(from), y = rowOf(square) - rowOf(from);
    const ahead = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (ahead > 0 && ahead + 2 * aside < least) [best, least] = [square, ahead + 2 * aside];
  }
  return best;
}

function* names() {
  for (let place = 0; place < SIZE; place++) {
    const middle = place * UNIT + 5;
    for (const far of [-2.4, 112.6]) {
      yield svg("text", { class: "name", x: middle, y: far + 1 }, "ABCDEFGHIJK"[place]);
      yield svg("text", { class: "name", x: far, y: middle + 1 }, String(SIZE - place));
    }
  }
}

function* wells() {
  for (let square = 0; square < SIZE * SIZE; square++) {
    const [cx, cy] = centre(square);
    if (isEdge(square)) yield svg("circle", { class: "well", cx, cy, r: 4.3 });
  }
}

function* gridLines() {
  for (const from of [10.35, 40.35, 70.35]) {
    for (let place = 2; place < 10; place++) {
      if (place % 3 !== 1) yield svg("path", { class: "grid", d: `M${place * UNIT} ${from} v29.3 M${from} ${place * UNIT} h29.3` });
    }
  }
}

function drawSection(owner, section) {
  const x = (1 + 3 * (section % 3)) * UNIT, y = (1 + 3 * Math.floor(section / 3)) * UNIT;
  const sign = owner >= 0 && svg("g", { transform: `translate(${x + 15} ${y + 15}) scale(5.5)` }, mark(owner + 1, { class: `sign c${owner + 1}` }));
  return svg("g", { class: owner < 0 ? "section" : `section owned c${owner + 1}` }, svg("rect", { x: x + 0.35, y: y + 0.35, width: 29.3, height: 29.3, rx: 1 }), sign);
}

/** Colour the candidates by visits. */
function drawHeat(candidates) {
  const most = Math.max(1, ...candidates.map((candidate) => candidate.visits));
  return candidates.filter(({ action }) => action !== PASS).map(({ action, visits }) =>
    at(action, svg("rect", { class: "warm", x: -5, y: -5, width: UNIT, height: UNIT, rx: 1.5, opacity: (0.08 + 0.85 * Math.sqrt(visits / most)).toFixed(3) })));
}

/** Write the mover's chance to win on the candidates, in per cent. */
function drawChances(candidates, { toMove }) {
  return candidates.filter(({ action, visits }) => action !== PASS && visits).map(({ action, shares }) =>
    at(action, svg("text", { class: "chance", y: 1.3 }, String(Math.round(100 * shares[toMove])))));
}

/** Cross a move out that throws a win away. */
const drawLost = (square) => at(square, svg("path", { class: "thrown", d: "M-4.6 4.6 L4.6 -4.6" }));

function outward(square) {
  const row = rowOf(square), column = columnOf(square);
  return [(column === 10) - (column === 0), (row === 10) - (row === 0)];
}

function drawTrace({ last, board }) {
  if (!last || last.action === PASS || !board[last.to]) return [];
  const [[x1, y1], [x2, y2]] = [centre(last.action), centre(last.to)];
  const ring = at(last.to, svg("circle", { class: "latest", r: 4.6 }));
  if (last.action === last.to) return [ring];
  return [svg("line", { class: `trace c${last.seat + 1}`, x1, y1, x2, y2 }), ring];
}

/** The bar between a blocked stone and the board. */
function bar(square) {
  const [dx, dy] = outward(square);
  return svg("line", { class: "bar", x1: -dx * 4.9 - dy * 2.6, y1: -dy * 4.9 - dx * 2.6, x2: -dx * 4.9 + dy * 2.6, y2: -dy * 4.9 + dx * 2.6 });
}

/** The arrow from a stone that can slide. */
function arrow(square) {
  const [dx, dy] = outward(square);
  const angle = (Math.atan2(-dy, -dx) * 180) / Math.PI;
  return svg("path", { class: "arrow", transform: `rotate(${angle}) translate(6 0)`, d: "M-0.9 -1.4 L1 0 L-0.9 1.4" });
}

/** Say what stands where, for who does not see it. */
function describe({ board, owners }) {
  const list = (code, test) => [...board.keys()].filter((s) => board[s] === code && test(s)).map((s) => squareName(s) + (isEdge(s) && isBlocked(board, s) ? " blocked" : "")).join(", ");
  const lines = COLOURS.map((colour, seat) => {
    const [edge, inside] = [list(seat + 1, isEdge), list(seat + 1, (s) => !isEdge(s))];
    const sections = owners.flatMap((owner, section) => (owner === seat ? [section + 1] : [])).join(", ");
    const parts = [edge && `on the edge ${edge}`, inside && `inside ${inside}`, sections && `owns sections ${sections}`].filter(Boolean);
    return parts.length ? `${capital(colour)}: ${parts.join("; ")}.` : null;
  });
  const neutral = list(NEUTRAL, () => true);
  return [...lines, neutral && `Neutral: ${neutral}.`].filter(Boolean).map((line) => h("li", {}, line));
}
