// Renderer of 9tka, ten units per square. Cells: 121 squares (0 empty, seat + 1, 5 neutral; + 8 blocked), then the
// owners of the 9 sections.

import { svg } from "../dom.js";

/** @import { Child, Renderer, Point, Position } from "../../../tools/page/types" */

const SIZE = 11;
const UNIT = 10;
const NEUTRAL = 5;
const BLOCKED = 8;
const SQUARES = 121;
const FILES = "ABCDEFGHIJK";
const COLOURS = ["yellow", "blue", "orange", "green"];
const SHAPES = ["disc", "triangle", "square", "diamond"];
let turned = false; // whether the board is seen from the other side
/** @param {number} square */
const rowOf = (square) => Math.floor(square / SIZE);
/** @param {number} square */
const columnOf = (square) => square % SIZE;
/** @param {number} square */
const isEdge = (square) => (rowOf(square) % 10 === 0) !== (columnOf(square) % 10 === 0);
/** @param {number} square */
const name = (square) => FILES[columnOf(square)] + (SIZE - rowOf(square));
/** @type {(square: number) => Point} */
const centre = (square) => {
  const x = columnOf(square) * UNIT + 5;
  const y = rowOf(square) * UNIT + 5;
  return turned ? [SIZE * UNIT - x, SIZE * UNIT - y] : [x, y];
};

/**
 * Return the mark that distinguishes the stones of a seat without colour.
 * @param {number} code
 */
function mark(code, classes = "mark") {
  if (code === 1) return svg("circle", { class: classes, r: 1.25 });
  const d = [
    "M0 -1.7 L1.65 1.15 L-1.65 1.15 Z",
    "M-1.2 -1.2 H1.2 V1.2 H-1.2 Z",
    "M0 -1.85 L1.5 0 L0 1.85 L-1.5 0 Z",
    "M-1.3 -1.3 L1.3 1.3 M1.3 -1.3 L-1.3 1.3",
  ][code - 2];
  return svg("path", { class: classes, d });
}

/** Return a stone at the origin. @param {number} code */
const stone = (code) =>
  svg(
    "g",
    { class: `figure s${code}` },
    svg("circle", { class: "shadow", cx: 0.25, cy: 0.5, r: 4 }),
    svg("circle", { class: "body", r: 4 }),
    svg("ellipse", { class: "gleam", cx: -1.2, cy: -1.7, rx: 1.7, ry: 1.1 }),
    mark(code),
  );

/**
 * Return a copy of a stone of `defs`, which is faster to create than a new stone.
 * @param {number} code
 */
const copyOf = (code, classes = "") => svg("use", { class: `stone ${classes}`, href: `#stone-${code}` });

/** @type {(square: number, ...children: Child[]) => SVGElement} */
const placeAt = (square, ...children) => {
  const [x, y] = centre(square);
  return svg("g", { transform: `translate(${x} ${y})`, "data-cell": square }, ...children);
};

/** Return a small picture of a seat's stone. @param {number} seat */
export function icon(seat) {
  const label = `${COLOURS[seat]} (${SHAPES[seat]})`;
  return svg("svg", { class: "icon", viewBox: "-4.6 -4.4 9.2 9.4", role: "img", "aria-label": label }, stone(seat + 1));
}

/** @type {Renderer} */
const renderer = {
  box: [-6, -6, 122, 122],
  unit: UNIT,
  numCells: SQUARES,
  centre,
  name,
  defs: () => [1, 2, 3, 4, 5].map((code) => svg("g", { id: `stone-${code}` }, stone(code))),
  ground: () => [
    svg("rect", { class: "frame", x: -5.6, y: -5.6, width: 121.2, height: 121.2, rx: 4 }),
    ...names(),
    ...wells(),
    svg("rect", { class: "well", x: 9.3, y: 9.3, width: 91.4, height: 91.4, rx: 1.5 }),
  ],
  under: ({ cells }) => [
    ...cells.slice(SQUARES).map((owner, section) => drawSection(owner - 1, section)),
    ...gridLines(),
  ],
  trace: drawTrace,
  stones: ({ cells, over }) =>
    squares(cells)
      .filter((square) => cells[square])
      .map((square) => {
        const isBlocked = cells[square] >= BLOCKED;
        return placeAt(
          square,
          copyOf(cells[square] % BLOCKED, isBlocked ? "shut" : ""),
          isBlocked && !over && bar(square),
        );
      }),
  clickMark: ([square, , landing], { preview_code: code }) =>
    landing === undefined
      ? placeAt(square, svg("circle", { class: `dot c${code}`, r: 1.1 }))
      : placeAt(square, svg("circle", { class: "ring", r: 4.5 }), arrow(square)),
  preview: ([square, , landing], { preview_code: code }) => placeAt(landing ?? square, copyOf(code, "ghost")),
  describe,
};

/**
 * Return the renderer; there is only one, because the page shows one board at a time.
 * @param {object} _config
 * @param {boolean} isTurned
 */
export function make(_config, isTurned) {
  turned = isTurned;
  return renderer;
}

/** @param {number[]} cells */
const squares = (cells) => [...cells.keys()].slice(0, SQUARES);

function* names() {
  for (let place = 0; place < SIZE; place++) {
    const middle = place * UNIT + 5;
    const file = FILES[turned ? SIZE - 1 - place : place];
    const rank = String(turned ? place + 1 : SIZE - place);
    for (const far of [-2.4, 112.6]) {
      yield svg("text", { class: "name", x: middle, y: far + 1, "aria-hidden": "true" }, file);
      yield svg("text", { class: "name", x: far, y: middle + 1, "aria-hidden": "true" }, rank);
    }
  }
}

function* wells() {
  for (let square = 0; square < SQUARES; square++) {
    const [cx, cy] = centre(square);
    if (isEdge(square)) yield svg("circle", { class: "well", cx, cy, r: 4.3 });
  }
}

function* gridLines() {
  for (const from of [10.35, 40.35, 70.35]) {
    for (let place = 2; place < 10; place++) {
      const far = place * UNIT;
      if (place % 3 !== 1) yield svg("path", { class: "grid", d: `M${far} ${from} v29.3 M${from} ${far} h29.3` });
    }
  }
}

/**
 * @param {number} owner a seat, -1 for none.
 * @param {number} section
 */
function drawSection(owner, section) {
  const place = turned ? 8 - section : section;
  const x = (1 + 3 * (place % 3)) * UNIT;
  const y = (1 + 3 * Math.floor(place / 3)) * UNIT;
  const ground = svg("rect", { x: x + 0.35, y: y + 0.35, width: 29.3, height: 29.3, rx: 1 });
  if (owner < 0) return svg("g", { class: "section" }, ground);
  const transform = `translate(${x + 15} ${y + 15}) scale(5.5)`;
  const sign = svg("g", { transform }, mark(owner + 1, `sign c${owner + 1}`));
  return svg("g", { class: `section owned c${owner + 1}` }, ground, sign);
}

/** Return the direction off the board at a square of the edge. @param {number} square */
function outward(square) {
  const row = rowOf(square);
  const column = columnOf(square);
  const steps = [Number(column === 10) - Number(column === 0), Number(row === 10) - Number(row === 0)];
  return steps.map((step) => (turned ? -step : step));
}

/** @param {Position} position */
function drawTrace({ last, cells }) {
  if (!last || last.from === null || last.to === null || !cells[last.to]) return [];
  const [x1, y1] = centre(last.from);
  const [x2, y2] = centre(last.to);
  const ring = placeAt(last.to, svg("circle", { class: "latest", r: 4.6 }));
  return last.from === last.to ? [ring] : [svg("line", { class: `trace c${last.seat + 1}`, x1, y1, x2, y2 }), ring];
}

/** Return the bar between a blocked stone and the board. @param {number} square */
function bar(square) {
  const [dx, dy] = outward(square);
  return svg("line", {
    class: "bar",
    x1: -dx * 4.9 - dy * 2.6,
    y1: -dy * 4.9 - dx * 2.6,
    x2: -dx * 4.9 + dy * 2.6,
    y2: -dy * 4.9 + dx * 2.6,
  });
}

/** Return the arrow at a stone that can slide. @param {number} square */
function arrow(square) {
  const [dx, dy] = outward(square);
  const angle = (Math.atan2(-dy, -dx) * 180) / Math.PI;
  const transform = `rotate(${angle}) translate(6 0)`;
  return svg("path", { class: "arrow", transform, d: "M-0.9 -1.4 L1 0 L-0.9 1.4" });
}

/** Describe the position for screen readers. @param {Position} position */
function describe({ cells }) {
  /** @type {(code: number, test: (square: number) => boolean) => string} */
  const list = (code, test) => {
    const found = squares(cells).filter((square) => cells[square] % BLOCKED === code && test(square));
    return found.map((square) => name(square) + (cells[square] >= BLOCKED ? " blocked" : "")).join(", ");
  };
  const lines = COLOURS.flatMap((colour, seat) => {
    const edge = list(seat + 1, isEdge);
    const inside = list(seat + 1, (square) => !isEdge(square));
    const owned = cells.slice(SQUARES).flatMap((owner, section) => (owner === seat + 1 ? [section + 1] : []));
    const parts = [
      edge && `on the edge ${edge}`,
      inside && `inside ${inside}`,
      owned.length && `owns sections ${owned.join(", ")}`,
    ].filter(Boolean);
    return parts.length ? [`${colour}: ${parts.join("; ")}.`] : [];
  });
  const neutral = list(NEUTRAL, () => true);
  return neutral ? [...lines, `neutral: ${neutral}.`] : lines;
}
