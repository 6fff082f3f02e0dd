// A move that is chosen while others think: played when one's turn comes, if the server says then that it can be
// played.

import { hitOf } from "./board.js";
import { announce, toast } from "./dom.js";

/**
 * @import { Mark, State } from "../../tools/page/types"
 * @import { TableView } from "./table.js"
 */

export class Premove {
  /** @param {TableView} view */
  constructor(view) {
    this.view = view;
    /** @type {number | null} */
    this.cell = null; // where it is played, null for none
  }

  /** Whether one may be chosen: somebody else thinks, and the newest position is looked at. */
  get isOpen() {
    const { state, isMyTurn, shown, analysis } = this.view;
    if (!state.you.length || state.over || state.settling || isMyTurn) return false;
    return shown === null && !analysis.line && state.seats[state.to_move].kind !== "open";
  }

  get name() {
    return this.cell === null ? "" : this.view.board.face.name(this.cell);
  }

  get says() {
    return `Next: ${this.name}. A click or Escape drops it.`;
  }

  /** @returns {Mark[]} */
  get marks() {
    return this.cell === null ? [] : [{ cell: this.cell, label: "", classes: "premove" }];
  }

  /** Choose a cell; any click drops the one that is chosen. @param {number | null} cell */
  choose(cell) {
    if (this.drop() || cell === null) return;
    this.cell = cell;
    announce(this.says);
    this.view.draw();
  }

  /** Drop what is chosen; tell whether there was something. */
  drop() {
    if (this.cell === null) return false;
    announce(`${this.name} is not played.`);
    this.cell = null;
    this.view.draw();
    return true;
  }

  /**
   * Play what is chosen if it is one's turn now, and forget it if the game has gone another way.
   * @param {State} before
   */
  update(before) {
    const { cell, name, view } = this;
    const { state } = view;
    const goesOn = state.round === before.round && state.moves.length >= before.moves.length;
    if (cell === null || (goesOn && !view.isMyTurn && !state.over && !state.settling)) return;
    this.cell = null;
    if (!goesOn || !view.isMyTurn) return;
    const hit = state.hits.map(hitOf).find((one) => one[0] === cell);
    if (!hit) toast(`${name} cannot be played now`);
    else view.app.ask({ type: "play", ply: state.moves.length, action: hit[1] });
  }
}
