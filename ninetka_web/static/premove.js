// A move that the user chooses before their turn. When the turn comes, the move is played if it is legal then.

import { toClickTarget } from "./board.js";
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
    this.cell = null; // the chosen cell, null for none
  }

  /** Whether a move can be chosen: another player is to move, and the newest position is shown. */
  get isAllowed() {
    const { state, isMyTurn, shownPly, analysis } = this.view;
    if (!state.you.length || state.over || state.settling || isMyTurn) return false;
    return shownPly === null && !analysis.triedActions && state.seats[state.to_move].kind !== "open";
  }

  get name() {
    return this.cell === null ? "" : this.view.board.renderer.name(this.cell);
  }

  get text() {
    return `Next: ${this.name}. A click or Escape drops it.`;
  }

  /** @returns {Mark[]} */
  get marks() {
    return this.cell === null ? [] : [{ cell: this.cell, label: "", classes: "premove" }];
  }

  /** Choose a cell. If a cell is chosen already, only drop it. @param {number | null} cell */
  choose(cell) {
    if (this.drop() || cell === null) return;
    this.cell = cell;
    announce(this.text);
    this.view.draw();
  }

  /** Drop the chosen cell; return whether there was one. */
  drop() {
    if (this.cell === null) return false;
    announce(`${this.name} is not played.`);
    this.cell = null;
    this.view.draw();
    return true;
  }

  /**
   * Play the chosen cell if it is the user's turn now; drop it if the game ended or restarted or moves were taken back.
   * @param {State} previous
   */
  update(previous) {
    const { cell, name, view } = this;
    const { state } = view;
    const continues = state.round === previous.round && state.moves.length >= previous.moves.length;
    if (cell === null || (continues && !view.isMyTurn && !state.over && !state.settling)) return;
    this.cell = null;
    if (!continues || !view.isMyTurn) return;
    const target = state.clickable.map(toClickTarget).find((each) => each[0] === cell);
    if (!target) toast(`${name} cannot be played now`);
    else view.app.send({ type: "play", ply: state.moves.length, action: target[1] });
  }
}
