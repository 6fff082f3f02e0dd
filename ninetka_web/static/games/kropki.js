// Renderer of Kropki, ten units per square of the paper. Cells: the nodes, row by row from the top: point + 4 * region.
//
// The outlines of a seat's regions are computed from the nodes in them, for each square of the paper: if a corner is
// in a region, the two corners of the square next to it are in the region too or belong to the chain around the region.

import { svg } from "../dom.js";

/** @import { Renderer, KropkiConfig, Point } from "../../../tools/page/types" */

const UNIT = 10;
const COLOURS = ["black", "white"];
/** @param {number} column */
const columnName = (column) => (column >= 26 ? "A" : "") + String.fromCharCode(65 + (column % 26));

/**
 * Return a point at the origin: filled for black, open for white; points out of play are small.
 * @param {number} code
 * @param {boolean} inert
 */
const point = (code, inert = false) =>
  svg(
    "g",
    { class: `dot-of k${code}${inert ? " inert" : ""}` },
    svg("circle", { class: "ink", r: inert ? 2 : 3 }),
    code === 2 && svg("circle", { class: "paper", r: inert ? 1.15 : 1.8 }),
  );

/** Return a small picture of a seat's point. @param {number} seat */
export function icon(seat) {
  const label = `${COLOURS[seat]} (${seat ? "open" : "filled"})`;
  return svg(
    "svg",
    { class: "icon", viewBox: "-4.4 -4.4 8.8 8.8", role: "img", "aria-label": label },
    svg("rect", { class: "sheet", x: -4.4, y: -4.4, width: 8.8, height: 8.8, rx: 2 }),
    point(seat + 1),
  );
}

/**
 * @param {KropkiConfig} config
 * @param {boolean} turned
 * @returns {Renderer}
 */
export function make({ width, height }, turned) {
  const right = (width - 1) * UNIT;
  const bottom = (height - 1) * UNIT;
  const nodes = [...Array(width * height).keys()];
  /** @param {number} node */
  const rowOf = (node) => Math.floor(node / width);
  /** @param {number} node */
  const columnOf = (node) => node % width;
  /** @type {(node: number) => Point} */
  const centre = (node) => {
    const [x, y] = [columnOf(node) * UNIT, rowOf(node) * UNIT];
    return turned ? [right - x, bottom - y] : [x, y];
  };
  /** @param {number} node */
  const name = (node) => columnName(columnOf(node)) + (height - rowOf(node));
  /** @type {(node: number, child: SVGElement) => SVGElement} */
  const placeAt = (node, child) => {
    const [x, y] = centre(node);
    return svg("g", { transform: `translate(${x} ${y})`, "data-cell": node }, child);
  };

  function* ground() {
    yield svg("rect", { class: "sheet", x: -11, y: -7, width: right + 18, height: bottom + 18, rx: 3 });
    for (let row = 0; row < height; row++) {
      const y = row * UNIT;
      const rank = String(turned ? row + 1 : height - row);
      yield svg("path", { class: row % (height - 1) ? "rule" : "rule outer", d: `M-3 ${y}H${right + 3}` });
      yield svg("text", { class: "paper-name", x: -7, y: y + 1.4, "aria-hidden": "true" }, rank);
    }
    for (let column = 0; column < width; column++) {
      const x = column * UNIT;
      const file = columnName(turned ? width - 1 - column : column);
      yield svg("path", { class: column % (width - 1) ? "rule" : "rule outer", d: `M${x} -3V${bottom + 3}` });
      yield svg("text", { class: "paper-name", x, y: bottom + 8.4, "aria-hidden": "true" }, file);
    }
  }

  /**
   * Yield, for each square of the paper with a corner inside, its inside corners and the corners next to them.
   * @param {(node: number) => boolean} inside
   */
  function* pieces(inside) {
    for (let row = 0; row + 1 < height; row++) {
      for (let column = 0; column + 1 < width; column++) {
        const first = row * width + column;
        const square = [first, first + 1, first + width + 1, first + width];
        /** @param {number} i */
        const isInside = (i) => inside(square[i % 4]);
        if (square.some(inside)) yield square.filter((_, i) => isInside(i) || isInside(i + 3) || isInside(i + 1));
      }
    }
  }

  /**
   * Return the tinted and hatched area of the inside nodes, and the chains around it.
   * @param {(node: number) => boolean} inside
   * @param {number} seat
   * @param {string} classes
   */
  function outline(inside, seat, classes) {
    let area = "";
    let chain = "";
    for (const corners of pieces(inside)) {
      area += `M${corners.map((corner) => centre(corner).join(" ")).join("L")}Z`;
      corners.forEach((corner, i) => {
        const before = corners[(i + corners.length - 1) % corners.length];
        if (!inside(before) && !inside(corner)) chain += `M${centre(before).join(" ")}L${centre(corner).join(" ")}`;
      });
    }
    if (!area) return [];
    return [
      svg("path", { class: `tinted k${seat + 1} ${classes}`, d: area }),
      svg("path", { class: `hatched ${classes}`, fill: `url(#hatch-${seat + 1})`, d: area }),
      svg("path", { class: `chain k${seat + 1} ${classes}`, d: chain }),
    ];
  }

  /** @param {number} seat */
  const hatch = (seat) =>
    svg(
      "pattern",
      {
        id: `hatch-${seat + 1}`,
        width: 4,
        height: 4,
        patternUnits: "userSpaceOnUse",
        patternTransform: `rotate(${seat ? 45 : -45})`,
      },
      svg("path", { class: `stroke k${seat + 1}`, d: "M0 1H4" }),
    );

  /** Return a copy of a point of `defs`. @type {(code: number, classes?: string) => SVGElement} */
  const copyOf = (code, classes = "") => svg("use", { class: `stone${classes}`, href: `#stone-${code}` });

  return {
    box: [-11, -7, right + 18, bottom + 18],
    unit: UNIT,
    numCells: width * height,
    centre,
    name,
    defs: () => [
      ...[0, 1].map(hatch),
      ...[1, 2].flatMap((code) => [
        svg("g", { id: `stone-${code}` }, point(code)),
        svg("g", { id: `stone-${code + 2}` }, point(code, true)),
      ]),
    ],
    ground: () => [...ground()],
    under: ({ cells }) => [0, 1].flatMap((seat) => outline((node) => cells[node] >> 2 === seat + 1, seat, "")),
    trace: () => [],
    stones: ({ cells, last }) => {
      const drawn = nodes.filter((node) => cells[node] & 3);
      const stones = drawn.map((node) => placeAt(node, copyOf((cells[node] & 3) + (cells[node] >> 2 ? 2 : 0))));
      const code = last && last.to !== null ? cells[last.to] & 3 : 0;
      if (last && last.to !== null && code) {
        stones.push(placeAt(last.to, svg("circle", { class: `last-dot k${code}`, r: 4.3 })));
      }
      return stones;
    },
    clickMark: ([node, action]) => (action === node ? null : placeAt(node, svg("circle", { class: "may", r: 4.2 }))),
    /** Show the point and what it would enclose; for a drawing, what it would take. */
    preview: ([node, action], { preview_code: code, clickable, preview_cells: previews }) => {
      const isPoint = action === node;
      const core = clickable.flatMap((hit) => (typeof hit !== "number" && hit[1] === action ? [hit[0]] : []));
      const inside = new Set(isPoint ? previews[node] : core);
      const area = outline((other) => inside.has(other), code - 1, "planned");
      return svg("g", {}, ...area, isPoint && placeAt(node, copyOf(code, " ghost")));
    },
    describe: ({ cells }) =>
      COLOURS.flatMap((colour, seat) => {
        /** @param {(node: number) => boolean} test */
        const list = (test) => nodes.filter(test).map(name).join(", ");
        const live = list((node) => cells[node] === seat + 1);
        const taken = list((node) => (cells[node] & 3) === seat + 1 && cells[node] >> 2 === 2 - seat);
        return [`${colour}: ${live || "no points"}.`, ...(taken ? [`${colour}, enclosed: ${taken}.`] : [])];
      }),
  };
}
