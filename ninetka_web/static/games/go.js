// Renderer of Go, ten units between lines. Cells: the points, rank 1 first: 0 empty, 1 black, 2 white, 3 ko point.

import { svg } from "../dom.js";

/** @import { Renderer, GoConfig, Point, Proposal } from "../../../tools/page/types" */

const UNIT = 10;
const KO = 3;
const FILES = "ABCDEFGHJKLMNOPQRST";
const COLOURS = ["black", "white"];

/** Return a stone at the origin. @param {number} code */
const stone = (code) =>
  svg(
    "g",
    { class: `go-stone g${code}` },
    svg("circle", { class: "shadow", cx: 0.25, cy: 0.55, r: 4.7 }),
    svg("circle", { class: "body", r: 4.7 }),
    svg("ellipse", { class: "gleam", cx: -1.4, cy: -1.9, rx: 1.9, ry: 1.3 }),
  );

/**
 * @param {number} code
 * @param {string} classes
 */
const copyOf = (code, classes = "") => svg("use", { class: `stone ${classes}`, href: `#stone-${code}` });

/** Return a small picture of a seat's stone. @param {number} seat */
export function icon(seat) {
  const more = { viewBox: "-5.3 -5.1 10.6 10.8", role: "img", "aria-label": COLOURS[seat] };
  return svg("svg", { class: "icon", ...more }, stone(seat + 1));
}

/**
 * @param {GoConfig} config
 * @param {boolean} turned
 * @returns {Renderer}
 */
export function make({ size, stars }, turned) {
  const width = size * UNIT;
  const points = [...Array(size * size).keys()];
  /** @type {(point: number) => Point} */
  const centre = (point) => {
    const x = (point % size) * UNIT + 5;
    const y = (size - 1 - Math.floor(point / size)) * UNIT + 5;
    return turned ? [width - x, width - y] : [x, y];
  };
  /** @param {number} point */
  const name = (point) => FILES[point % size] + (1 + Math.floor(point / size));
  /** @type {(point: number, child: SVGElement) => SVGElement} */
  const placeAt = (point, child) => {
    const [x, y] = centre(point);
    return svg("g", { transform: `translate(${x} ${y})`, "data-cell": point }, child);
  };
  /** @type {(point: number, side: number, classes: string) => SVGElement} */
  const square = (point, side, classes) =>
    placeAt(point, svg("rect", { class: classes, x: -side / 2, y: -side / 2, width: side, height: side, rx: 0.5 }));

  function* ground() {
    yield svg("rect", { class: "wood", x: -6, y: -6, width: width + 12, height: width + 12, rx: 4 });
    for (let line = 0; line < size; line++) {
      const middle = line * UNIT + 5;
      const far = width - 5;
      const file = FILES[turned ? size - 1 - line : line];
      const rank = String(turned ? line + 1 : size - line);
      yield svg("path", {
        class: line % (size - 1) ? "line" : "line outer",
        d: `M5 ${middle}H${far}M${middle} 5V${far}`,
      });
      for (const margin of [-2.6, width + 2.6]) {
        yield svg("text", { class: "go-name", x: middle, y: margin + 1.1, "aria-hidden": "true" }, file);
        yield svg("text", { class: "go-name", x: margin, y: middle + 1.1, "aria-hidden": "true" }, rank);
      }
    }
    for (const star of stars) yield placeAt(star, svg("circle", { class: "star", r: 0.9 }));
  }

  /** Draw an agreed or proposed score: crosses on dead stones and the owners of points. @param {Proposal} proposal */
  const agreedPoints = ({ dead, owners }) => [
    ...points.filter((point) => owners[point]).map((point) => square(point, 3.6, `owner g${owners[point]}`)),
    ...dead.map((point) => placeAt(point, svg("path", { class: "dead", d: "M-2.4 -2.4L2.4 2.4M2.4 -2.4L-2.4 2.4" }))),
  ];

  /**
   * Draw the estimated owner of each point; larger squares are more certain. Living stones get no square.
   * @param {number[]} ownership
   * @param {number[]} cells
   */
  const estimatedPoints = (ownership, cells) =>
    points.flatMap((point) => {
      const share = ownership[point];
      const owner = share > 0 ? 1 : 2;
      if (!(Math.abs(share) > 0.1) || cells[point] === owner) return [];
      return [square(point, 5 * Math.sqrt(Math.abs(share)), `owner g${owner}`)];
    });

  return {
    box: [-6.5, -6.5, width + 13, width + 13],
    unit: UNIT,
    numCells: size * size,
    centre,
    name,
    defs: () => [1, 2].map((code) => svg("g", { id: `stone-${code}` }, stone(code))),
    ground: () => [...ground()],
    under: ({ cells }) => points.filter((point) => cells[point] === KO).map((point) => square(point, 4.2, "ko")),
    trace: () => [],
    stones: ({ cells, last }) => [
      ...points
        .filter((point) => cells[point] === 1 || cells[point] === 2)
        .map((point) => placeAt(point, copyOf(cells[point]))),
      ...(last && last.to !== null && cells[last.to]
        ? [placeAt(last.to, svg("circle", { class: "go-last", r: 2.2 }))]
        : []),
    ],
    over: ({ proposal, insight, cells }) => {
      if (proposal) return agreedPoints(proposal);
      return insight?.ownership ? estimatedPoints(insight.ownership, cells) : [];
    },
    clickMark: () => null,
    preview: ([point], { preview_code: code }) => placeAt(point, copyOf(code, "ghost")),
    describe: ({ cells }) =>
      COLOURS.map((colour, seat) => {
        const stones = points.filter((point) => cells[point] === seat + 1);
        return `${colour}: ${stones.map(name).join(", ") || "no stones"}.`;
      }),
  };
}
