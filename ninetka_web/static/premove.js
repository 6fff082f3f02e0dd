// A move that is chosen while others think: played when one's turn comes, if the server says then that it can be played.

import { announce, toast } from "./dom.js";

export class Premove {
  constructor(view) {
    this.view = view;
    this.cell = null; // where it is played, null for none
  }

  /** Whether one may be chosen: somebody else thinks, and the newest position is looked at. */
  get isOpen() {
    const { state, isMyTurn, shown, analysis } = this.view;
    return state.you.length > 0 && !state.over && !state.settling && !isMyTurn && shown === null && !analysis.line && state.seats[state.to_move].kind !== "open";
  }

  get name() {
    return this.view.board.face.name(this.cell);
  }

  get says() {
    return `Next: ${this.name}. A click or Escape drops it.`;
  }

  get marks() {
    return this.cell === null ? [] : [{ cell: this.cell, label: "", classes: "premove" }];
  }

  /** Choose a cell; any click drops the one that is chosen. */
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

  /** Play what is chosen if it is one's turn now, and forget it if the game has gone another way. */
  update(before) {
    const { cell, view } = this, { state } = view, goesOn = state.round === before.round && state.moves.length >= before.moves.length;
    if (cell === null || (goesOn && !view.isMyTurn && !state.over && !state.settling)) return;
    const { name } = this, hit = state.hits.find((one) => one === cell || one[0] === cell);
    this.cell = null;
    if (!goesOn || !view.isMyTurn) return;
    if (hit === undefined) toast(`${name} cannot be played now`);
    else view.app.ask({ type: "play", ply: state.moves.length, action: hit[1] ?? hit });
  }
}
