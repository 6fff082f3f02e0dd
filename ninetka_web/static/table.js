// The page of a table: board, status, seats, controls, and the panels for moves, analysis, sharing and chat.

import { DRAWN, agentName, announce, assertDefined, byId, capitalize, copy, h, joinWords, toast } from "./dom.js";
import { Analysis } from "./analysis.js";
import { Board, seatIcon } from "./board.js";
import { People } from "./people.js";
import { Premove } from "./premove.js";
import { Timeline } from "./timeline.js";

/**
 * @import {
 *   App, Choices, ClientMessage, Game, Move, Position, Start, State, TableMessage
 * } from "../../tools/page/types"
 */

/** @type {Record<string, string>} */
const TABS = { moves: "Moves", analysis: "Analysis", share: "Share", chat: "Chat" };
const EVENTS = { resigned: "gave up", time: "lost on time", left: "left" };

export class TableView {
  /**
   * @param {HTMLElement} main
   * @param {App} app
   * @param {string} id
   */
  constructor(main, app, id) {
    this.app = app;
    this.id = id;
    /** @type {State | null} */
    this.latest = null; // the latest state of the table, null before the first
    /** @type {Start | null} */
    this.start = null;
    /** @type {Move[]} */
    this.moves = [];
    /** @type {{ game: Game, board: Board } | null} */
    this.layout = null; // set with the first state
    /** @type {number | null} */
    this.shownPly = null; // null for the newest ply
    this.tab = "moves";
    this.closed = false;
    this.main = main;
    this.invited = sessionStorage.getItem("ninetka-invited") === id; // whether the user took an open seat here
    this.timeline = new Timeline(
      (ply) => this.showPly(ply),
      () => {
        this.board.turn();
        this.draw();
      },
    );
    this.analysis = new Analysis(app, this);
    this.premove = new Premove(this);
    /** @param {string} name */
    const part = (name) => h("div", { class: name });
    this.parts = { seats: part("seats"), controls: part("controls"), panel: part("panel") };
    this.title = h("span", {});
    this.headline = h("h1", { class: "headline" }, this.title);
    this.hint = h("p", { class: "hint" });
    this.people = new People(app, this);
    this.actionButtons = h("div", { class: "acts" });
    this.tabs = h("div", { class: "tabs", role: "tablist" });
    this.onKey = (/** @type {KeyboardEvent} */ event) => this.handleKey(event);
    this.onVisibility = () => this.analysis.refresh();
    document.addEventListener("keydown", this.onKey);
    document.addEventListener("visibilitychange", this.onVisibility);
  }

  /** The latest state of the table. */
  get state() {
    return assertDefined(this.latest);
  }

  get game() {
    return assertDefined(this.layout).game;
  }

  get board() {
    return assertDefined(this.layout).board;
  }

  /** Build the page, when the first state is known. @param {State} state */
  build(state) {
    const game = this.app.game(state.game);
    this.app.setGame(game);
    const play = (/** @type {number} */ action) => this.play(action);
    const board = new Board(state.game, state.config, play, (cell) => this.clickIdle(cell));
    this.layout = { game, board };
    scrollTo(0, 0);
    const [, , width, height] = board.renderer.box;
    document.documentElement.style.setProperty("--aspect", (width / height).toFixed(3));
    const status = h("div", { class: "status" }, this.headline, this.hint);
    const stage = [status, board.element, board.text, this.actionButtons, this.timeline.element];
    const side = [this.parts.seats, this.parts.controls, this.tabs, this.parts.panel];
    this.main.replaceChildren(
      h(
        "div",
        { class: "table", "data-game": state.game },
        h("section", { class: "stage", "aria-label": "Game" }, ...stage),
        h("aside", { class: "side" }, ...side),
      ),
    );
    board.svg.focus({ preventScroll: true }); // the focused element was removed
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.analysis.stop();
    this.people.close();
    this.closed = true;
  }

  /** Show the newest position. */
  reset() {
    this.shownPly = null;
  }

  /** Process a new state of the table, which contains the moves from number `from` on. @param {State} state */
  update(state) {
    const previous = this.latest;
    const wasMine = previous ? this.isMyTurn : true;
    if (!state.start && !this.start) return; // the first state of a page must be complete; it follows
    if (state.start) {
      this.start = state.start;
      this.moves = [];
    }
    this.moves = [...this.moves.slice(0, state.from), ...state.moves];
    state.moves = this.moves;
    this.latest = state;
    this.people.update(this.isMyTurn, wasMine);
    if (!this.layout) this.build(state);
    if (previous) this.premove.update(previous);
    const continues = previous !== null && previous.round === state.round;
    const isNew = continues && state.moves.length === previous.moves.length + 1;
    if (!continues || (this.shownPly !== null && this.shownPly > state.moves.length)) {
      this.shownPly = state.view_only && !previous ? 0 : null;
    }
    this.draw(isNew && this.shownPly === null);
    if (previous) this.announceChanges(previous, isNew);
    this.analysis.refresh();
  }

  /** @param {TableMessage} message */
  receive(message) {
    if (message.type === "chat") this.people.receive(message);
    else if (this.layout || message.type === "lost") this.analysis.receive(message); // else of the previous table
  }

  /** The ply of the shown position. */
  get ply() {
    return this.shownPly ?? this.state.moves.length;
  }

  /**
   * The shown position: the first position with the changes of the moves up to the shown ply, including tried moves.
   * @returns {Position}
   */
  get position() {
    const { state, ply } = this;
    const { insight, trial } = this.analysis;
    const start = assertDefined(this.start);
    const played = [...state.moves.slice(0, ply), ...(trial?.moves ?? [])];
    const cells = [...start.cells];
    const last = played.at(-1) ?? null;
    const isLatest = !trial && ply === state.moves.length;
    for (const move of played) for (const [cell, code] of move.cells) cells[cell] = code;
    const over = trial ? trial.over : isLatest && state.over;
    const toMove = trial ? trial.to_move : isLatest ? state.to_move : state.moves[ply].seat;
    const { scores, seat_notes: notes } = last ?? start;
    const proposal = isLatest ? state.proposal : null;
    const counted = proposal && state.over ? proposal.scores : scores;
    return { cells, last, isLatest, ply, over, toMove, scores: counted, notes, proposal, insight };
  }

  get isMyTurn() {
    const { state } = this;
    return !state.over && !state.settling && !state.view_only && state.you.includes(state.to_move);
  }

  /** Show the position after `ply` plies; after the newest, the page follows the game again. @param {number} ply */
  showPly(ply) {
    const newest = this.state.moves.length;
    const target = Math.max(0, Math.min(newest, ply));
    const forward = target === this.ply + 1;
    this.shownPly = target === newest ? null : target;
    this.draw(forward);
    this.analysis.refresh();
  }

  /** Play an action, or add it to the tried moves. @param {number} action */
  play(action) {
    const { triedActions, trial } = this.analysis;
    if (trial) this.analysis.tryMoves([...trial.variation, action]);
    else if (!triedActions && this.isMyTurn && this.shownPly === null) {
      this.app.send({ type: "play", ply: this.state.moves.length, action });
    }
  }

  /**
   * Handle a click on the board while the user cannot move: choose a move for later, or show why nothing happens.
   * @param {number | null} cell
   */
  clickIdle(cell) {
    const { state } = this;
    if (this.premove.isAllowed) this.premove.choose(cell);
    else if (!state.you.length || state.over || state.settling || this.analysis.triedActions) return;
    else if (this.shownPly !== null) toast("This is an earlier position; go to the newest one to play");
    else if (!this.isMyTurn) toast(`It is ${this.game.colours[state.to_move]}'s turn`);
  }

  /** The marks on the board. */
  get marks() {
    const { marks, ...more } = this.analysis.marks;
    return { ...more, marks: [...marks, ...this.premove.marks] };
  }

  draw(animate = false) {
    const { analysis, board, game, isMyTurn, parts, position, shownPly, state } = this;
    const focused = document.activeElement;
    const names = state.seats.map((_, seat) => this.nameOf(seat));
    document.title = isMyTurn ? `● Your turn – ${game.title}` : game.title;
    const canPlay = isMyTurn && shownPly === null;
    const choices = analysis.triedActions ? analysis.trial : canPlay ? state : null; // trying a move does not play it
    const isPlaying =
      state.you.length > 0 && !state.over && !state.settling && shownPly === null && !analysis.triedActions;
    board.draw(position, choices, { animate, isPlaying, ...this.marks });
    this.timeline.draw(state, this.ply, analysis.timelineShares());
    this.drawStatus(position, names);
    this.drawActionButtons(choices);
    const cards = state.seats.map((_, seat) => this.seatCard(position, seat, names));
    parts.seats.replaceChildren(...cards, ...this.people.questions());
    parts.controls.replaceChildren(...this.controls());
    this.drawTabs();
    this.drawPanel();
    this.keepFocus(focused);
  }

  /**
   * Restore the focus after everything except the board was recreated. If the focused element is gone, focus the board.
   * @param {Element | null} focused
   */
  keepFocus(focused) {
    if (!focused || focused.isConnected) return;
    if (focused.id) document.getElementById(focused.id)?.focus({ preventScroll: true });
    if (document.activeElement === document.body) this.board.svg.focus({ preventScroll: true });
  }

  /**
   * Draw the buttons of the actions without a cell, and the question about the score of a finished game.
   * @param {Choices | null} choices
   */
  drawActionButtons(choices) {
    const buttons = (choices?.buttons ?? []).map(({ action, label, key }) => {
      const more = { id: `act-${key}`, title: `${label} (${key})`, click: () => this.play(action) };
      const hint = h("kbd", { "aria-hidden": "true" }, key);
      return h("button", { type: "button", class: "act", ...more }, label, " ", hint);
    });
    this.actionButtons.replaceChildren(...buttons, ...this.scoreQuestion());
  }

  /** Return the question whether the user agrees to the proposed score. */
  scoreQuestion() {
    const { accepted, proposal, question, settling, you } = this.state;
    if (!settling || this.shownPly !== null || !proposal || !you.length) return [];
    /** @type {(id: string, type: "accept" | "play_on", label: string, classes?: string) => HTMLElement} */
    const answer = (id, type, label, classes = "") => {
      const click = () => this.app.send({ type, question });
      return h("button", { type: "button", id, class: classes, click }, label);
    };
    const agree = accepted
      ? h("span", { class: "faint" }, "Waiting for the other side to agree.")
      : answer("accept", "accept", "Agree", "primary");
    return [
      h(
        "div",
        { class: "question", role: "group", "aria-label": "Score of the game" },
        h("span", {}, proposal.text),
        agree,
        answer("play-on", "play_on", "Play on"),
      ),
    ];
  }

  /** Return the displayed name of a seat's agent or user. @param {number} seat */
  nameOf(seat) {
    const { seats, view_only: isViewOnly, you } = this.state;
    const { kind, agent, name } = seats[seat];
    if (you.includes(seat)) return name || "You";
    if (kind === "agent") return name ? `${agentName(this.game, agent)} for ${name}` : agentName(this.game, agent);
    if (kind === "open") return "Open seat";
    return isViewOnly ? this.agentOrName(name) : name || "Guest";
  }

  /** @param {string} name */
  agentOrName(name) {
    return this.game.agents.some((agent) => agent.name === name.split(":")[0]) ? agentName(this.game, name) : name;
  }

  /** @param {number} seat */
  colourName(seat) {
    return capitalize(this.game.colours[seat]);
  }

  // Status

  /**
   * Draw the status above the board. Only changed texts are replaced, so that screen readers read only these.
   * @param {Position} position
   * @param {string[]} names
   */
  drawStatus(position, names) {
    const { headline, hint, state, title } = this;
    const [text, more] = this.statusText(position, names);
    const seat = position.over ? state.winner : state.settling && position.isLatest ? null : position.toMove;
    const isKnown = seat !== null && seat !== DRAWN && !(position.over && !position.isLatest);
    const icon = isKnown ? seatIcon(state.game, seat) : null;
    headline.classList.toggle("mine", this.isMyTurn && position.isLatest);
    if (headline.querySelector("svg")?.outerHTML !== icon?.outerHTML) {
      headline.replaceChildren(...(icon ? [icon] : []), title);
    }
    if (title.textContent !== text) title.textContent = text;
    if (hint.textContent !== more) hint.textContent = more;
  }

  /**
   * Return the headline and the text below it.
   * @param {Position} position
   * @param {string[]} names
   * @returns {[text: string, hint: string]}
   */
  statusText(position, names) {
    const { state } = this;
    const { last, isLatest, over, ply, toMove } = position;
    const passedSeats = last?.passed ?? [];
    const passedNames = joinWords(passedSeats.map((seat) => this.colourName(seat)));
    const passed = passedSeats.length
      ? `${passedNames} cannot move and ${passedSeats.length > 1 ? "are" : "is"} passed over. `
      : "";
    const { trial } = this.analysis;
    if (trial) {
      const next = over ? "" : `${this.colourName(toMove)} to move.`;
      const tried = `${trial.moves.length} tried after ply ${ply}; the game is not changed. ${next}`;
      return [`Trying moves${over ? ": the game would be over" : ""}`, tried];
    }
    if (over) return this.endingText(passed);
    if (!isLatest) {
      const before = last ? `${this.moveText(last)}. ` : "";
      return [`After ${ply} of ${state.moves.length} plies`, `${before}${passed}${this.colourName(toMove)} to move.`];
    }
    if (state.view_only) {
      return [
        "The record ends here",
        state.stated_result ? `The file says: ${state.stated_result}.` : "The game is not over.",
      ];
    }
    if (state.settling) {
      const waitText = state.compiling
        ? "Compiling the score estimate; this happens only once …"
        : "Looking for dead stones …";
      return ["Scoring", state.proposal ? "Agree on the dead stones, or play on." : waitText];
    }
    if (this.premove.cell !== null) return [this.turnText(toMove, names), this.premove.text];
    const prompt = state.seats[toMove].kind === "open" ? this.invitation() : state.prompt[this.isMyTurn ? 0 : 1];
    return [this.turnText(toMove, names), passed + prompt];
  }

  /**
   * Return the headline that says whose turn it is.
   * @param {number} seat
   * @param {string[]} names
   */
  turnText(seat, names) {
    const { compiling, paused, seats, you } = this.state;
    const { agent, kind } = seats[seat];
    if (this.isMyTurn) return you.length > 1 ? `Your turn, ${this.game.colours[seat]}` : "Your turn";
    if (kind === "open") return `Waiting for a player for ${this.game.colours[seat]}`;
    if (!agent) return `${names[seat]}'s turn`;
    if (paused) return "Paused";
    return compiling ? `Compiling ${names[seat]}; this happens only once …` : `${this.colourName(seat)} is thinking …`;
  }

  /** Return the text that explains how an open seat is taken. */
  invitation() {
    if (this.invited) return "The other player can open the same address.";
    const { you } = this.state;
    return you.length ? "Send the address of this page to another player, or sit down yourself." : "Sit down to play.";
  }

  /**
   * Return the headline and the text below it for a finished game.
   * @param {string} passed
   * @returns {[text: string, hint: string]}
   */
  endingText(passed) {
    const { called_off: isCalledOff, event, outcome, stated_result: statedResult, winner, you } = this.state;
    const more = passed + outcome + (statedResult ? ` The file says: ${statedResult}.` : "");
    if (isCalledOff) return ["Called off", "A player had left. No player has lost."];
    if (winner === null) return statedResult ? ["No winner", more] : ["Given up", "The game ended without a winner."];
    if (event) return [`${this.colourName(winner)} wins`, `${this.colourName(event.seat)} ${EVENTS[event.kind]}.`];
    if (winner === DRAWN) return ["Drawn", more];
    return [you.includes(winner) && you.length === 1 ? "You win" : `${this.colourName(winner)} wins`, more];
  }

  /**
   * Announce to screen readers what has changed.
   * @param {State} previous
   * @param {boolean} isNew
   */
  announceChanges(previous, isNew) {
    const { state } = this;
    const last = state.moves.at(-1);
    const texts = [];
    if (isNew && last) {
      texts.push(`${this.moveText(last)}.`);
      if (last.passed.length) texts.push(`${joinWords(last.passed.map((seat) => this.colourName(seat)))} passed over.`);
    } else if (state.moves.length < previous.moves.length && state.round === previous.round) {
      texts.push("Moves were taken back.");
    }
    if (state.over && !previous.over) texts.push(this.endingText("")[0] + ".");
    else if (state.settling && state.proposal && !previous.proposal) texts.push(state.proposal.text);
    else if (this.isMyTurn && (isNew || !previous.you.includes(previous.to_move))) texts.push("Your turn.");
    if (texts.length) announce(texts.join(" "));
  }

  // Seats

  /**
   * @param {Position} position
   * @param {number} seat
   * @param {string[]} names
   */
  seatCard(position, seat, names) {
    const { people, state } = this;
    const active = position.over ? state.winner === seat : position.toMove === seat && !state.settling;
    const absence = people.absenceText(seat);
    const note = absence
      ? h("span", { class: "faint", "data-left": seat }, absence)
      : h("span", { class: "faint" }, this.seatNote(position, seat));
    const word = position.over && state.proposal ? "points" : state.score_word;
    const score = h("span", { class: "score" }, String(position.scores[seat]));
    const end =
      state.seats[seat].kind === "open" && !state.over
        ? h("button", { type: "button", class: "sit", click: () => this.sit(seat) }, "Sit here")
        : h("span", { class: "tally" }, score, " ", h("span", { class: "word" }, word));
    return h(
      "div",
      { class: `seat c${seat + 1}${active ? " active" : ""}` },
      seatIcon(state.game, seat),
      h("div", { class: "person" }, h("b", {}, names[seat]), note),
      people.clockOf(seat),
      end,
    );
  }

  /**
   * @param {Position} position
   * @param {number} seat
   */
  seatNote(position, seat) {
    const { event, resigned, seats, winner, you } = this.state;
    const colour = this.colourName(seat) + (you.includes(seat) && seats[seat].name ? ", you" : "");
    if (event?.seat === seat) return `${colour} · ${EVENTS[event.kind]}`;
    if (resigned.includes(seat)) return `${colour} · ${seats[seat].agent ? "an agent plays on" : "gave up"}`;
    if (position.over) return winner === seat ? `${colour} · wins` : colour;
    return position.notes[seat] ? `${colour} · ${position.notes[seat]}` : colour;
  }

  /** Open the dialog to take an open seat. @param {number} seat */
  sit(seat) {
    /** @type {string} */
    const savedName = JSON.parse(localStorage.getItem("ninetka-form") ?? "{}").name ?? "";
    const name = h("input", { type: "text", name: "name", maxlength: 24, value: savedName, autocomplete: "nickname" });
    const keep = h("input", { type: "checkbox", name: "keep" });
    const agree = "The finished game may be stored in this server's statistics";
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", {}, `Play ${this.game.colours[seat]}`),
      h("label", { class: "field" }, "Your name", name),
      this.state.seats.some((each) => each.keep) && h("label", { class: "agree" }, keep, h("span", {}, agree)),
      h(
        "div",
        { class: "buttons" },
        h("button", { class: "primary", value: "sit" }, "Sit down"),
        h("button", { value: "" }, "Just watch"),
      ),
    );
    const dialog = h("dialog", {}, form);
    dialog.addEventListener("close", () => {
      this.invited = dialog.returnValue === "sit";
      if (this.invited) {
        sessionStorage.setItem("ninetka-invited", this.id);
        this.app.send({ type: "sit", seat, name: name.value.trim(), keep: keep.checked });
      }
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  }

  // Controls

  controls() {
    const { state } = this;
    /** @type {(id: string, label: string, title: string, click: () => void, disabled?: boolean) => HTMLElement} */
    const button = (id, label, title, click, disabled = false) =>
      h("button", { type: "button", id, title, disabled, click }, label);
    /** @param {ClientMessage} message */
    const send = (message) => this.app.send(message);
    const seated = state.you.length > 0;
    const people = state.seats.some((seat) => seat.kind === "person");
    const others = state.seats.some(({ kind }, seat) => kind === "person" && !state.you.includes(seat));
    const hasAgent = state.seats.some((seat) => seat.agent);
    const moved = state.moves.some((move) => state.you.includes(move.seat));
    const row = [];
    if (seated && !state.over) {
      const cannot = !moved || Boolean(state.request);
      row.push(button("undo", "Take back", "Take back your last move (U)", () => send({ type: "undo" }), cannot));
      const hint = () => this.analysis.requestHint();
      if (!others) row.push(button("hint-me", "Hint", "Show a good move (H)", hint, !this.isMyTurn));
      const resign = () => confirm("Give this game up?") && send({ type: "resign" });
      if (!state.settling) row.push(button("resign", "Give up", "End the game as a loss", resign));
    }
    if (state.over && !state.view_only && !state.request && (seated || !people)) {
      const more = { title: "All players move up one seat", click: () => send({ type: "rematch" }) };
      const label = others ? "Ask for a rematch" : "Rematch, seats rotated";
      row.push(h("button", { type: "button", id: "rematch", class: "primary", ...more }, label));
    }
    if (hasAgent && !state.over && (seated || !people)) row.push(this.paceControls(others));
    row.push(h("a", { class: "button", href: "/" }, "New game"));
    if (seated) row.push(this.soundSwitch());
    return row;
  }

  soundSwitch() {
    const { people } = this;
    const more = { title: "A sound when it is your turn", "aria-label": "Sound", "aria-pressed": String(people.sound) };
    const click = () => people.toggle();
    const label = people.sound ? "♪" : "♪ off";
    return h("button", { type: "button", class: "quiet", id: "sound", ...more, click }, label);
  }

  /** @param {boolean} others */
  paceControls(others) {
    const { agent_delay_ms: delay, paused } = this.state;
    /** @param {{ delay_ms?: number, paused?: boolean }} change */
    const set = (change) => this.app.send({ type: "pace", delay_ms: delay, paused, ...change });
    /** @type {[number, string][]} */
    const speeds = [
      [2000, "slow"],
      [700, "normal"],
      [150, "fast"],
      [0, "at once"],
    ];
    const pause = { id: "pause", "aria-pressed": String(paused), click: () => set({ paused: !paused }) };
    const speed = h(
      "select",
      { id: "speed", "aria-label": "Speed of the agents" },
      speeds.map(([value, label]) => h("option", { value, selected: value === delay }, label)),
    );
    speed.addEventListener("change", () => set({ delay_ms: Number(speed.value) }));
    return h(
      "span",
      { class: "pace" },
      (paused || !others) && h("button", { type: "button", ...pause }, paused ? "▶ Continue" : "❚❚ Pause"),
      speed,
    );
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    const { analysis, latest } = this;
    if (event.target instanceof Element && event.target.closest("input, textarea, select, dialog")) return;
    if (event.ctrlKey || event.metaKey || event.altKey || !latest) return;
    const { key } = event;
    const letter = key.toUpperCase();
    const [back, forward, newest] = [this.ply - 1, this.ply + 1, latest.moves.length];
    /** @type {Record<string, number | undefined>} */
    const places = { ",": back, ".": forward, ArrowLeft: back, ArrowRight: forward, Home: 0, End: newest };
    const to = places[key];
    if ([",", "ArrowLeft"].includes(key) && analysis.stepBack()) {
      // The last tried move was taken back.
    } else if (to !== undefined) this.showPly(to);
    else if (key === "Escape" && analysis.triedActions) analysis.tryMoves(null);
    else if (key === "Escape" && this.premove.drop()) {
      // The chosen move was dropped.
    } else if (letter === "H") document.getElementById("hint-me")?.click();
    else if (letter === "U") document.getElementById("undo")?.click();
    else if (document.getElementById(`act-${letter}`)) byId(`act-${letter}`).click();
    else return;
    event.preventDefault();
  }

  // The panel

  drawTabs() {
    const { unreadCount } = this.people;
    if (this.tabs.childElementCount === 0) {
      const tabs = Object.entries(TABS).map(([name, label]) => {
        const click = () => this.openTab(name);
        const keydown = (/** @type {KeyboardEvent} */ event) => this.handleTabKey(event);
        return h("button", { type: "button", role: "tab", id: `tab-${name}`, click, keydown }, label);
      });
      this.tabs.append(...tabs);
      this.parts.panel.setAttribute("role", "tabpanel");
    }
    for (const tab of this.tabs.children) {
      const chosen = tab.id === `tab-${this.tab}`;
      tab.setAttribute("aria-selected", String(chosen));
      tab.setAttribute("tabindex", chosen ? "0" : "-1");
      if (tab.id === "tab-chat") tab.textContent = unreadCount ? `${TABS.chat} (${unreadCount})` : TABS.chat;
    }
    this.parts.panel.setAttribute("aria-labelledby", `tab-${this.tab}`);
  }

  /** @param {KeyboardEvent} event */
  handleTabKey(event) {
    const step = Number(event.key === "ArrowRight") - Number(event.key === "ArrowLeft");
    if (!step) return;
    const names = Object.keys(TABS);
    this.openTab(names[(names.indexOf(this.tab) + step + names.length) % names.length]);
    byId(`tab-${this.tab}`).focus();
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} tab */
  openTab(tab) {
    this.tab = tab;
    this.analysis.refresh();
    this.draw();
  }

  drawPanel() {
    const { panel } = this.parts;
    if (this.tab === "analysis") panel.replaceChildren(this.analysis.element());
    else if (this.tab === "share") panel.replaceChildren(this.sharePanel());
    else if (this.tab === "chat") {
      const chat = this.people.panel();
      if (panel.firstChild !== chat) panel.replaceChildren(chat);
    } else this.drawMoves(panel);
  }

  /** @param {HTMLElement} panel */
  drawMoves(panel) {
    const { game, state } = this;
    const moves = h("div", { class: "moves" });
    let stage = "";
    state.moves.forEach((move, number) => {
      if (move.stage !== stage) {
        stage = move.stage;
        moves.append(h("h2", {}, game.stages[stage]));
      }
      moves.append(this.moveButton(move, number));
      for (const seat of move.passed) {
        const title = `${game.colours[seat]} cannot move`;
        moves.append(h("span", { class: `pass c${seat + 1}`, title }, "(pass)"));
      }
    });
    if (!state.moves.length) moves.append(h("p", { class: "faint" }, "The moves will be listed here."));
    panel.replaceChildren(moves);
    /** @type {HTMLElement | null} */
    const current = moves.querySelector("[aria-current]");
    if (!current) return;
    // Reading the layout now would delay drawing the board.
    requestAnimationFrame(() => (panel.scrollTop = current.offsetTop - panel.clientHeight / 2));
  }

  /**
   * @param {Move} move
   * @param {number} number
   */
  moveButton(move, number) {
    const ply = number + 1;
    const blunder = { class: "blunder", title: "This move threw a win away", "aria-label": ", threw a win away" };
    return h(
      "button",
      {
        type: "button",
        id: `ply-${ply}`,
        class: `move c${move.seat + 1}`,
        "aria-current": ply === this.ply ? "step" : null,
        "aria-label": `Ply ${ply}: ${this.moveText(move)}`,
        click: () => this.showPly(ply),
      },
      move.name,
      this.analysis.isBlunder(number) && h("b", blunder, "?"),
    );
  }

  /** Describe a move, with the colour of its seat. @param {Move} move */
  moveText(move) {
    return `${this.colourName(move.seat)} ${move.move_text}`;
  }

  sharePanel() {
    const { game, id, state } = this;
    const canRecord = (state.winner !== null || (state.over && state.stated_result !== "")) && !state.from_position;
    const seated = state.you.length > 0;
    /** @type {(message: ClientMessage, use: (text: string) => void) => void} */
    const fetchText = (message, use) => {
      this.app.connection.send(message).then(use, (error) => toast(error.message));
    };
    /** @param {boolean} sgf */
    const downloadRecord = (sgf) =>
      fetchText({ type: "record", sgf }, (text) => download(text, `${state.game}.${sgf ? "sgf" : "txt"}`));
    const copyPosition = () => fetchText({ type: "position", ply: this.ply }, (text) => copy(text, "Position"));
    const copyPersonalLink = () =>
      fetchText({ type: "personal_link" }, (key) => copy(`${location.origin}/t/${id}#seat=${key}`, "Personal link"));
    const address = h("input", {
      type: "text",
      readonly: true,
      value: location.href,
      "aria-label": "Address of this table",
      focus: (event) => event.currentTarget.select(),
    });
    /** @type {(id: string, label: string, click: () => void, disabled?: boolean) => HTMLElement} */
    const button = (id, label, click, disabled = false) => h("button", { type: "button", id, disabled, click }, label);
    const personalText =
      "Your personal link moves your seat to another browser. " +
      "Keep it secret. A new link makes the previous one invalid.";
    const recordText = canRecord
      ? "The whole game as a record, which ninetka replay can read:"
      : "When the game is over, its record can be downloaded here.";
    return h(
      "div",
      { class: "sharing" },
      h("p", {}, "Anyone with this address can watch the game and take an open seat."),
      h(
        "div",
        { class: "buttons" },
        address,
        button("copy-link", "Copy", () => copy(location.href, "Address")),
      ),
      seated && h("p", {}, personalText),
      seated && button("copy-personal", "Copy personal link", copyPersonalLink),
      h("p", {}, "The position on the board as text, which can be opened on the start page:"),
      button("copy-position", "Copy position", copyPosition),
      h("p", {}, recordText),
      button("download", "Download record", () => downloadRecord(false), !canRecord),
      game.sgf && button("download-sgf", "Download SGF", () => downloadRecord(true), !state.moves.length),
    );
  }
}

/**
 * Download a text as a file.
 * @param {string} text
 * @param {string} name
 */
function download(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
