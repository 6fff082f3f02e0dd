// Draws 9tka, ten units a square. Cells: 121 squares (0 empty, seat + 1, 5 neutral; + 8 blocked), 9 owners of sections.

import { svg } from "../dom.js";

const SIZE = 11, UNIT = 10, NEUTRAL = 5, BLOCKED = 8, SQUARES = 121;
const rowOf = (square) => Math.floor(square / SIZE);
const columnOf = (square) => square % SIZE;
const isEdge = (square) => (rowOf(square) % 10 === 0) !== (columnOf(square) % 10 === 0);
let turned = false; // whether the board is seen from the other side
const centre = (square) => [columnOf(square) * UNIT + 5, rowOf(square) * UNIT + 5].map((far) => (turned ? SIZE * UNIT - far : far));
const name = (square) => "ABCDEFGHIJK"[columnOf(square)] + (SIZE - rowOf(square));
const COLOURS = ["yellow", "blue", "orange", "green"], SHAPES = ["disc", "triangle", "square", "diamond"];

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

const at = (square, ...children) => {
  const [x, y] = centre(square);
  return svg("g", { transform: `translate(${x} ${y})`, "data-cell": square }, ...children);
};

/** A small picture of a seat's stone. */
export function icon(seat) {
  return svg("svg", { class: "icon", viewBox: "-4.6 -4.4 9.2 9.4", role: "img", "aria-label": `${COLOURS[seat]} (${SHAPES[seat]})` }, stone(seat + 1));
}

const face = {
  box: [-6, -6, 122, 122], unit: UNIT, places: SQUARES, centre, name, icon,
  defs: () => [1, 2, 3, 4, 5].map((code) => svg("g", { id: `stone-${code}` }, stone(code))),
  ground: () => [svg("rect", { class: "frame", x: -5.6, y: -5.6, width: 121.2, height: 121.2, rx: 4 }), ...names(), ...wells(),
    svg("rect", { class: "well", x: 9.3, y: 9.3, width: 91.4, height: 91.4, rx: 1.5 })],
  under: ({ cells }) => [...cells.slice(SQUARES).map((owner, section) => drawSection(owner - 1, section)), ...gridLines()],
  trace: drawTrace,
  stones: ({ cells, over }) => squares(cells).filter((square) => cells[square]).map((square) => {
    const shut = cells[square] >= BLOCKED;
    return at(square, copyOf(cells[square] % BLOCKED, shut ? "shut" : ""), shut && !over && bar(square));
  }),
  hint: ([square, , landing], { ghost }) => landing === undefined ? at(square, svg("circle", { class: `dot c${ghost}`, r: 1.1 }))
    : at(square, svg("circle", { class: "ring", r: 4.5 }), arrow(square)),
  ghost: ([square, , landing], { ghost }) => at(landing ?? square, copyOf(ghost, "ghost")),
  describe,
};

/** The face of the one board that is shown. */
export function make(config, turn) {
  turned = turn;
  return face;
}

const squares = (cells) => [...cells.keys()].slice(0, SQUARES);

function* names() {
  for (let place = 0; place < SIZE; place++) {
    const middle = place * UNIT + 5;
    for (const far of [-2.4, 112.6]) {
      yield svg("text", { class: "name", x: middle, y: far + 1, "aria-hidden": "true" }, "ABCDEFGHIJK"[turned ? SIZE - 1 - place : place]);
      yield svg("text", { class: "name", x: far, y: middle + 1, "aria-hidden": "true" }, String(turned ? place + 1 : SIZE - place));
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
      if (place % 3 !== 1) yield svg("path", { class: "grid", d: `M${place * UNIT} ${from} v29.3 M${from} ${place * UNIT} h29.3` });
    }
  }
}

function drawSection(owner, section) {
  const place = turned ? 8 - section : section, x = (1 + 3 * (place % 3)) * UNIT, y = (1 + 3 * Math.floor(place / 3)) * UNIT;
  const sign = owner >= 0 && svg("g", { transform: `translate(${x + 15} ${y + 15}) scale(5.5)` }, mark(owner + 1, { class: `sign c${owner + 1}` }));
  return svg("g", { class: owner < 0 ? "section" : `section owned c${owner + 1}` }, svg("rect", { x: x + 0.35, y: y + 0.35, width: 29.3, height: 29.3, rx: 1 }), sign);
}

function outward(square) {
  const row = rowOf(square), column = columnOf(square);
  return [(column === 10) - (column === 0), (row === 10) - (row === 0)].map((step) => (turned ? -step : step));
}

function drawTrace({ last, cells }) {
  if (!last || last.to === null || !cells[last.to]) return [];
  const [[x1, y1], [x2, y2]] = [centre(last.from), centre(last.to)];
  const ring = at(last.to, svg("circle", { class: "latest", r: 4.6 }));
  return last.from === last.to ? [ring] : [svg("line", { class: `trace c${last.seat + 1}`, x1, y1, x2, y2 }), ring];
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
function describe({ cells }) {
  const list = (code, test) => squares(cells).filter((s) => cells[s] % BLOCKED === code && test(s)).map((s) => name(s) + (cells[s] >= BLOCKED ? " blocked" : "")).join(", ");
  const lines = COLOURS.map((colour, seat) => {
    const [edge, inside] = [list(seat + 1, isEdge), list(seat + 1, (s) => !isEdge(s))];
    const sections = cells.slice(SQUARES).flatMap((owner, section) => (owner === seat + 1 ? [section + 1] : [])).join(", ");
    const parts = [edge && `on the edge ${edge}`, inside && `inside ${inside}`, sections && `owns sections ${sections}`].filter(Boolean);
    return parts.length ? `${colour}: ${parts.join("; ")}.` : null;
  });
  const neutral = list(NEUTRAL, () => true);
  return [...lines, neutral && `neutral: ${neutral}.`].filter(Boolean);
}
