// Draws Kropki, ten units a square of the paper. Cells: the nodes, row by row from the top: point + 4 * region.
//
// What a seat has drawn follows from the nodes in its regions, square by square of the paper: the corners of a square
// beside a corner inside a region are inside too, or links of the chain.

import { svg } from "../dom.js";

const UNIT = 10, COLOURS = ["black", "white"];
const columnName = (column) => (column >= 26 ? "A" : "") + String.fromCharCode(65 + (column % 26));

/** A point around the origin: filled for one seat, open for the other; those out of play are small. */
const point = (code, inert = false) => svg("g", { class: `dot-of k${code}${inert ? " inert" : ""}` }, svg("circle", { class: "ink", r: inert ? 2 : 3 }), code === 2 && svg("circle", { class: "paper", r: inert ? 1.15 : 1.8 }));

/** A small picture of a seat's point. */
export function icon(seat) {
  return svg("svg", { class: "icon", viewBox: "-4.4 -4.4 8.8 8.8", role: "img", "aria-label": `${COLOURS[seat]} (${seat ? "open" : "filled"})` },
    svg("rect", { class: "sheet", x: -4.4, y: -4.4, width: 8.8, height: 8.8, rx: 2 }), point(seat + 1));
}

export function make({ width, height }, turned) {
  const right = (width - 1) * UNIT, bottom = (height - 1) * UNIT;
  const nodes = [...Array(width * height).keys()];
  const rowOf = (node) => Math.floor(node / width), columnOf = (node) => node % width;
  const centre = (node) => (turned ? [right - columnOf(node) * UNIT, bottom - rowOf(node) * UNIT] : [columnOf(node) * UNIT, rowOf(node) * UNIT]);
  const name = (node) => columnName(columnOf(node)) + (height - rowOf(node));
  const at = (node, ...children) => {
    const [x, y] = centre(node);
    return svg("g", { transform: `translate(${x} ${y})`, "data-cell": node }, ...children);
  };

  function* ground() {
    yield svg("rect", { class: "sheet", x: -11, y: -7, width: right + 18, height: bottom + 18, rx: 3 });
    for (let row = 0; row < height; row++) {
      const y = row * UNIT;
      yield svg("path", { class: row % (height - 1) ? "rule" : "rule outer", d: `M-3 ${y}H${right + 3}` });
      yield svg("text", { class: "paper-name", x: -7, y: y + 1.4, "aria-hidden": "true" }, String(turned ? row + 1 : height - row));
    }
    for (let column = 0; column < width; column++) {
      const x = column * UNIT;
      yield svg("path", { class: column % (width - 1) ? "rule" : "rule outer", d: `M${x} -3V${bottom + 3}` });
      yield svg("text", { class: "paper-name", x, y: bottom + 8.4, "aria-hidden": "true" }, columnName(turned ? width - 1 - column : column));
    }
  }

  /** The part of each square of the paper that is inside, as its corners; and the links of the chain along it. */
  function* pieces(inside) {
    for (let row = 0; row + 1 < height; row++) {
      for (let column = 0; column + 1 < width; column++) {
        const first = row * width + column, square = [first, first + 1, first + width + 1, first + width];
        if (square.some(inside)) yield square.filter((corner, i) => inside(corner) || inside(square[(i + 3) % 4]) || inside(square[(i + 1) % 4]));
      }
    }
  }

  /** Hatch what is inside, and draw the chains round it. */
  function outline(inside, seat, classes) {
    let area = "", chain = "";
    for (const corners of pieces(inside)) {
      area += `M${corners.map((corner) => centre(corner).join(" ")).join("L")}Z`;
      corners.forEach((corner, i) => {
        const before = corners.at(i - 1);
        if (!inside(before) && !inside(corner)) chain += `M${centre(before).join(" ")}L${centre(corner).join(" ")}`;
      });
    }
    if (!area) return [];
    return [svg("path", { class: `tinted k${seat + 1} ${classes}`, d: area }), svg("path", { class: `hatched ${classes}`, fill: `url(#hatch-${seat + 1})`, d: area }), svg("path", { class: `chain k${seat + 1} ${classes}`, d: chain })];
  }

  const hatch = (seat) => svg("pattern", { id: `hatch-${seat + 1}`, width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${seat ? 45 : -45})` },
    svg("path", { class: `stroke k${seat + 1}`, d: "M0 1H4" }));

  return {
    box: [-11, -7, right + 18, bottom + 18], unit: UNIT, places: width * height, centre, name, icon,
    defs: () => [...[0, 1].map(hatch), ...[1, 2].flatMap((code) => [svg("g", { id: `stone-${code}` }, point(code)), svg("g", { id: `stone-${code + 2}` }, point(code, true))])],
    ground: () => [...ground()],
    under: ({ cells }) => [0, 1].flatMap((seat) => outline((node) => cells[node] >> 2 === seat + 1, seat, "")),
    trace: () => [],
    stones: ({ cells, last }) => [
      ...nodes.filter((node) => cells[node] & 3).map((node) => at(node, svg("use", { class: "stone", href: `#stone-${(cells[node] & 3) + (cells[node] >> 2 ? 2 : 0)}` }))),
      ...(last && last.to !== null && cells[last.to] & 3 ? [at(last.to, svg("circle", { class: `last-dot k${cells[last.to] & 3}`, r: 4.3 }))] : [])],
    hint: ([node, action]) => (action === node ? null : at(node, svg("circle", { class: "may", r: 4.2 }))),
    /** The point, and what it would enclose; or what a drawing takes. */
    ghost: ([node, action], { ghost, hits, previews }) => {
      const core = action === node ? previews[node] ?? [] : hits.filter((hit) => hit[1] === action).map((hit) => hit[0]);
      const inside = new Set(core);
      return svg("g", {}, ...outline((other) => inside.has(other), ghost - 1, "planned"), action === node && at(node, svg("use", { class: "stone ghost", href: `#stone-${ghost}` })));
    },
    describe: ({ cells }) => [1, 2].flatMap((code) => {
      const list = (test) => nodes.filter(test).map(name).join(", ");
      const live = list((node) => cells[node] === code), taken = list((node) => (cells[node] & 3) === code && cells[node] >> 2 === 3 - code);
      return [`${COLOURS[code - 1]}: ${live || "no points"}.`, ...(taken ? [`${COLOURS[code - 1]}, enclosed: ${taken}.`] : [])];
    }),
  };
}
