// A table: the board in the middle, who plays, what can be done, how the game went.

import { DRAWN, agentName, announce, byId, capital, copy, h, known, list, toast } from "./dom.js";
import { Analysis } from "./analysis.js";
import { Board, seatIcon } from "./board.js";
import { People } from "./people.js";
import { Premove } from "./premove.js";
import { Timeline } from "./timeline.js";

/** @import { App, Choices, Game, Move, Position, Start, State, TableMessage, Wish } from "../../tools/page/types" */

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
    this.latest = null; // the table as it is now, null until it is known
    /** @type {Start | null} */
    this.start = null;
    /** @type {Move[]} */
    this.moves = [];
    /** @type {{ game: Game, board: Board } | null} */
    this.laid = null; // what there is as soon as the table is known
    /** @type {number | null} */
    this.shown = null; // the ply that is looked at; null: the newest
    this.tab = "moves";
    this.closed = false;
    this.main = main;
    this.invited = sessionStorage.getItem("ninetka-invited") === id; // who came by the address of the page
    this.timeline = new Timeline(
      (ply) => this.show(ply),
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
    this.acts = h("div", { class: "acts" });
    this.tabs = h("div", { class: "tabs", role: "tablist" });
    this.onKey = (/** @type {KeyboardEvent} */ event) => this.key(event);
    this.onSight = () => this.analysis.look();
    document.addEventListener("keydown", this.onKey);
    document.addEventListener("visibilitychange", this.onSight);
  }

  /** The table as it is now. */
  get state() {
    return known(this.latest);
  }

  get game() {
    return known(this.laid).game;
  }

  get board() {
    return known(this.laid).board;
  }

  /** Lay the table out, once it is known what is played. @param {State} state */
  lay(state) {
    const game = this.app.game(state.game);
    this.app.about(game);
    const play = (/** @type {number} */ action) => this.play(action);
    const board = new Board(state.game, state.config, play, (cell) => this.clickIdle(cell));
    this.laid = { game, board };
    scrollTo(0, 0);
    const [, , width, height] = board.face.box;
    document.documentElement.style.setProperty("--aspect", (width / height).toFixed(3));
    const status = h("div", { class: "status" }, this.headline, this.hint);
    const stage = [status, board.element, board.text, this.acts, this.timeline.element];
    const side = [this.parts.seats, this.parts.controls, this.tabs, this.parts.panel];
    this.main.replaceChildren(
      h(
        "div",
        { class: "table", "data-game": state.game },
        h("section", { class: "stage", "aria-label": "Game" }, ...stage),
        h("aside", { class: "side" }, ...side),
      ),
    );
    board.svg.focus({ preventScroll: true }); // what had the focus is gone
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("visibilitychange", this.onSight);
    this.analysis.rest();
    this.people.close();
    this.closed = true;
  }

  reset() {
    this.shown = null;
  }

  /** Take in a new state of the table: it holds the moves from number `from` on. @param {State} state */
  update(state) {
    const before = this.latest;
    const wasMine = before ? this.isMyTurn : true;
    if (!state.start && !this.start) return; // meant for a page that was left meanwhile; the whole comes soon
    if (state.start) {
      this.start = state.start;
      this.moves = [];
    }
    this.moves = [...this.moves.slice(0, state.from), ...state.moves];
    state.moves = this.moves;
    this.latest = state;
    this.people.update(this.isMyTurn, wasMine);
    if (!this.laid) this.lay(state);
    if (before) this.premove.update(before);
    const goesOn = before !== null && before.round === state.round;
    const isNew = goesOn && state.moves.length === before.moves.length + 1;
    if (!goesOn || (this.shown !== null && this.shown > state.moves.length)) {
      this.shown = state.shown && !before ? 0 : null;
    }
    this.draw(isNew && this.shown === null);
    if (before) this.tell(before, isNew);
    this.analysis.look();
  }

  /** @param {TableMessage} message */
  hear(message) {
    if (message.type === "chat") this.people.hear(message);
    else if (this.laid || message.type === "lost") this.analysis.hear(message); // not of the table before
  }

  /** What is to be seen now. */
  get ply() {
    return this.shown ?? this.state.moves.length;
  }

  /**
   * The position that is looked at: the cells of the start with the changes of the moves up to it, and what is known.
   * @returns {Position}
   */
  get position() {
    const { state, ply } = this;
    const { insight, trial } = this.analysis;
    const start = known(this.start);
    const played = [...state.moves.slice(0, ply), ...(trial?.moves ?? [])];
    const cells = [...start.cells];
    const last = played.at(-1) ?? null;
    const live = !trial && ply === state.moves.length;
    for (const move of played) for (const [cell, code] of move.cells) cells[cell] = code;
    const over = trial ? trial.over : live && state.over;
    const toMove = trial ? trial.to_move : live ? state.to_move : state.moves[ply].seat;
    const { scores, notes } = last ?? start;
    const proposal = live ? state.proposal : null;
    const counted = proposal && state.over ? proposal.scores : scores;
    return { cells, last, live, ply, over, toMove, scores: counted, notes, proposal, insight };
  }

  get isMyTurn() {
    const { state } = this;
    return !state.over && !state.settling && !state.shown && state.you.includes(state.to_move);
  }

  /** Look at the position after some plies; the newest one stays in view as the game goes on. @param {number} ply */
  show(ply) {
    const newest = this.state.moves.length;
    const target = Math.max(0, Math.min(newest, ply));
    const forward = target === this.ply + 1;
    this.shown = target === newest ? null : target;
    this.draw(forward);
    this.analysis.look();
  }

  /** @param {number} action */
  play(action) {
    const { line, trial } = this.analysis;
    if (trial) this.analysis.tryOut([...trial.line, action]);
    else if (!line && this.isMyTurn && this.shown === null) {
      this.app.ask({ type: "play", ply: this.state.moves.length, action });
    }
  }

  /**
   * A click on the board when nothing can be played: it chooses a move to be played later, or does nothing; say why.
   * @param {number | null} cell
   */
  clickIdle(cell) {
    const { state } = this;
    if (this.premove.isOpen) this.premove.choose(cell);
    else if (!state.you.length || state.over || state.settling || this.analysis.line) return;
    else if (this.shown !== null) toast("You look at an earlier position: go to the newest to play");
    else if (!this.isMyTurn) toast(`It is ${this.game.colours[state.to_move]}'s turn`);
  }

  /** What is drawn on the board in addition to the position. */
  get marks() {
    const { marks, ...more } = this.analysis.marks;
    return { ...more, marks: [...marks, ...this.premove.marks] };
  }

  draw(animate = false) {
    const { analysis, board, game, isMyTurn, parts, position, shown, state } = this;
    const held = document.activeElement;
    const names = state.seats.map((_, seat) => this.nameOf(seat));
    document.title = isMyTurn ? `● Your turn – ${game.title}` : game.title;
    const mine = isMyTurn && shown === null;
    const choices = analysis.line ? analysis.trial : mine ? state : null; // what is tried is never played
    const waits = state.you.length > 0 && !state.over && !state.settling && shown === null && !analysis.line;
    board.draw(position, choices, { animate, waits, ...this.marks });
    this.timeline.draw(state, this.ply, analysis.band());
    this.drawStatus(position, names);
    this.drawActs(choices);
    const cards = state.seats.map((_, seat) => this.seatCard(position, seat, names));
    parts.seats.replaceChildren(...cards, ...this.people.questions());
    parts.controls.replaceChildren(...this.controls());
    this.drawTabs();
    this.drawPanel();
    this.keepFocus(held);
  }

  /**
   * Leave the focus where it was, though all but the board is made anew; where that is gone the board has it.
   * @param {Element | null} held
   */
  keepFocus(held) {
    if (!held || held.isConnected) return;
    if (held.id) document.getElementById(held.id)?.focus({ preventScroll: true });
    if (document.activeElement === document.body) this.board.svg.focus({ preventScroll: true });
  }

  /**
   * What can be played that has no place on the board; and the question how a finished game is counted.
   * @param {Choices | null} choices
   */
  drawActs(choices) {
    const acts = (choices?.buttons ?? []).map(({ action, label, key }) => {
      const more = { id: `act-${key}`, title: `${label} (${key})`, click: () => this.play(action) };
      const hint = h("kbd", { "aria-hidden": "true" }, key);
      return h("button", { type: "button", class: "act", ...more }, label, " ", hint);
    });
    this.acts.replaceChildren(...acts, ...this.settling());
  }

  settling() {
    const { accepted, proposal, question, settling, you } = this.state;
    if (!settling || this.shown !== null || !proposal || !you.length) return [];
    /** @type {(id: string, type: "accept" | "play_on", label: string, classes?: string) => HTMLElement} */
    const answer = (id, type, label, classes = "") => {
      const click = () => this.app.ask({ type, question });
      return h("button", { type: "button", id, class: classes, click }, label);
    };
    const agree = accepted
      ? h("span", { class: "faint" }, "Waiting for the other side to agree.")
      : answer("accept", "accept", "Agree", "primary");
    return [
      h(
        "div",
        { class: "question", role: "group", "aria-label": "How the game is counted" },
        h("span", {}, proposal.say),
        agree,
        answer("play-on", "play_on", "Play on"),
      ),
    ];
  }

  /** @param {number} seat */
  nameOf(seat) {
    const { seats, shown, you } = this.state;
    const { kind, agent, name } = seats[seat];
    if (you.includes(seat)) return name || "You";
    if (kind === "agent") return name ? `${agentName(this.game, agent)} for ${name}` : agentName(this.game, agent);
    if (kind === "open") return "Open seat";
    return shown ? this.agentOrName(name) : name || "Guest";
  }

  /** @param {string} name */
  agentOrName(name) {
    return this.game.agents.some((agent) => agent.name === name.split(":")[0]) ? agentName(this.game, name) : name;
  }

  /** @param {number} seat */
  colour(seat) {
    return capital(this.game.colours[seat]);
  }

  // What is said above the board

  /**
   * Change only what is new, so that screen readers read that alone.
   * @param {Position} position
   * @param {string[]} names
   */
  drawStatus(position, names) {
    const { headline, hint, state, title } = this;
    const [text, more] = this.words(position, names);
    const seat = position.over ? state.winner : state.settling && position.live ? null : position.toMove;
    const isKnown = seat !== null && seat !== DRAWN && !(position.over && !position.live);
    const icon = isKnown ? seatIcon(state.game, seat) : null;
    headline.classList.toggle("mine", this.isMyTurn && position.live);
    if (headline.querySelector("svg")?.outerHTML !== icon?.outerHTML) {
      headline.replaceChildren(...(icon ? [icon] : []), title);
    }
    if (title.textContent !== text) title.textContent = text;
    if (hint.textContent !== more) hint.textContent = more;
  }

  /**
   * @param {Position} position
   * @param {string[]} names
   * @returns {[text: string, hint: string]}
   */
  words(position, names) {
    const { state } = this;
    const { last, live, over, ply, toMove } = position;
    const gone = last?.passed ?? [];
    const who = list(gone.map((seat) => this.colour(seat)));
    const passed = gone.length ? `${who} cannot move and ${gone.length > 1 ? "are" : "is"} passed over. ` : "";
    const { trial } = this.analysis;
    if (trial) {
      const next = over ? "" : `${this.colour(toMove)} to move.`;
      const tried = `${trial.moves.length} tried after ply ${ply}; the game is not changed. ${next}`;
      return [`Trying moves${over ? ": the game would be over" : ""}`, tried];
    }
    if (over) return this.ending(passed);
    if (!live) {
      const before = last ? `${this.mover(last)}. ` : "";
      return [`After ${ply} of ${state.moves.length} plies`, `${before}${passed}${this.colour(toMove)} to move.`];
    }
    if (state.shown) {
      return ["The record ends here", state.told ? `The file says: ${state.told}.` : "The game is not over."];
    }
    if (state.settling) {
      const looks = state.compiling ? "Compiling what counts it, once …" : "Looking for dead stones …";
      return ["The game is counted", state.proposal ? "Agree on the dead stones, or play on." : looks];
    }
    if (this.premove.cell !== null) return [this.whose(toMove, names), this.premove.says];
    const prompt = state.seats[toMove].kind === "open" ? this.invitation() : state.prompt[this.isMyTurn ? 0 : 1];
    return [this.whose(toMove, names), passed + prompt];
  }

  /**
   * Say whose turn it is.
   * @param {number} seat
   * @param {string[]} names
   */
  whose(seat, names) {
    const { compiling, paused, seats, you } = this.state;
    const { agent, kind } = seats[seat];
    if (this.isMyTurn) return you.length > 1 ? `Your turn, ${this.game.colours[seat]}` : "Your turn";
    if (kind === "open") return `Waiting for somebody to play ${this.game.colours[seat]}`;
    if (!agent) return `${names[seat]}'s turn`;
    if (paused) return "Paused";
    return compiling ? `Compiling ${names[seat]}, once …` : `${this.colour(seat)} is thinking …`;
  }

  /** Say how an open seat is taken. */
  invitation() {
    if (this.invited) return "They come by the same address as you.";
    const { you } = this.state;
    return you.length ? "Send them the address of this page, or sit down yourself." : "Sit down to play.";
  }

  /**
   * @param {string} passed
   * @returns {[text: string, hint: string]}
   */
  ending(passed) {
    const { called_off: isCalledOff, event, outcome, told, winner, you } = this.state;
    const more = passed + outcome + (told ? ` The file says: ${told}.` : "");
    if (isCalledOff) return ["Called off", "Somebody had left, and nobody has lost."];
    if (winner === null) return told ? ["No winner", more] : ["Given up", "The game ended before anybody won."];
    if (event) return [`${this.colour(winner)} wins`, `${this.colour(event.seat)} ${EVENTS[event.kind]}.`];
    if (winner === DRAWN) return ["Drawn", more];
    return [you.includes(winner) && you.length === 1 ? "You win" : `${this.colour(winner)} wins`, more];
  }

  /**
   * Tell screen readers what has happened.
   * @param {State} before
   * @param {boolean} isNew
   */
  tell(before, isNew) {
    const { state } = this;
    const last = state.moves.at(-1);
    const told = [];
    if (isNew && last) {
      told.push(`${this.mover(last)}.`);
      if (last.passed.length) told.push(`${list(last.passed.map((seat) => this.colour(seat)))} passed over.`);
    } else if (state.moves.length < before.moves.length && state.round === before.round) {
      told.push("Moves were taken back.");
    }
    if (state.over && !before.over) told.push(this.ending("")[0] + ".");
    else if (state.settling && state.proposal && !before.proposal) told.push(state.proposal.say);
    else if (this.isMyTurn && (isNew || !before.you.includes(before.to_move))) told.push("Your turn.");
    if (told.length) announce(told.join(" "));
  }

  // Who plays

  /**
   * @param {Position} position
   * @param {number} seat
   * @param {string[]} names
   */
  seatCard(position, seat, names) {
    const { people, state } = this;
    const active = position.over ? state.winner === seat : position.toMove === seat && !state.settling;
    const left = people.left(seat);
    const note = left
      ? h("span", { class: "faint", "data-left": seat }, left)
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
    const colour = this.colour(seat) + (you.includes(seat) && seats[seat].name ? ", you" : "");
    if (event?.seat === seat) return `${colour} · ${EVENTS[event.kind]}`;
    if (resigned.includes(seat)) return `${colour} · ${seats[seat].agent ? "an agent plays on" : "gave up"}`;
    if (position.over) return winner === seat ? `${colour} · wins` : colour;
    return position.notes[seat] ? `${colour} · ${position.notes[seat]}` : colour;
  }

  /** @param {number} seat */
  sit(seat) {
    /** @type {string} */
    const usual = JSON.parse(localStorage.getItem("ninetka-form") ?? "{}").name ?? "";
    const name = h("input", { type: "text", name: "name", maxlength: 24, value: usual, autocomplete: "nickname" });
    const keep = h("input", { type: "checkbox", name: "keep" });
    const agree = "The finished game may be kept in this server's statistics";
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
        this.app.ask({ type: "sit", seat, name: name.value.trim(), keep: keep.checked });
      }
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  }

  // What can be done

  controls() {
    const { state } = this;
    /** @type {(id: string, label: string, title: string, click: () => void, disabled?: boolean) => HTMLElement} */
    const button = (id, label, title, click, disabled = false) =>
      h("button", { type: "button", id, title, disabled, click }, label);
    /** @param {Wish} message */
    const ask = (message) => this.app.ask(message);
    const seated = state.you.length > 0;
    const people = state.seats.some((seat) => seat.kind === "person");
    const others = state.seats.some(({ kind }, seat) => kind === "person" && !state.you.includes(seat));
    const hasAgent = state.seats.some((seat) => seat.agent);
    const moved = state.moves.some((move) => state.you.includes(move.seat));
    const row = [];
    if (seated && !state.over) {
      const cannot = !moved || Boolean(state.wish);
      row.push(button("undo", "Take back", "Take back your last move (U)", () => ask({ type: "undo" }), cannot));
      const hint = () => this.analysis.askHint();
      if (!others) row.push(button("hint-me", "Hint", "Show a good move (H)", hint, !this.isMyTurn));
      const resign = () => confirm("Give this game up?") && ask({ type: "resign" });
      if (!state.settling) row.push(button("resign", "Give up", "End the game as a loss", resign));
    }
    if (state.over && !state.shown && !state.wish && (seated || !people)) {
      const more = { title: "Everybody moves up a seat", click: () => ask({ type: "rematch" }) };
      const label = others ? "Ask for a rematch" : "Rematch, seats rotated";
      row.push(h("button", { type: "button", id: "rematch", class: "primary", ...more }, label));
    }
    if (hasAgent && !state.over && (seated || !people)) row.push(this.pace(others));
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
  pace(others) {
    const { wait, paused } = this.state;
    /** @param {{ wait?: number, paused?: boolean }} change */
    const set = (change) => this.app.ask({ type: "pace", wait, paused, ...change });
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
      speeds.map(([value, label]) => h("option", { value, selected: value === wait }, label)),
    );
    speed.addEventListener("change", () => set({ wait: Number(speed.value) }));
    return h(
      "span",
      { class: "pace" },
      (paused || !others) && h("button", { type: "button", ...pause }, paused ? "▶ Go on" : "❚❚ Pause"),
      speed,
    );
  }

  /** @param {KeyboardEvent} event */
  key(event) {
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
      // The latest of the moves that are tried.
    } else if (to !== undefined) this.show(to);
    else if (key === "Escape" && analysis.line) analysis.tryOut(null);
    else if (key === "Escape" && this.premove.drop()) {
      // What was chosen for later.
    } else if (letter === "H") document.getElementById("hint-me")?.click();
    else if (letter === "U") document.getElementById("undo")?.click();
    else if (document.getElementById(`act-${letter}`)) byId(`act-${letter}`).click();
    else return;
    event.preventDefault();
  }

  // The panel

  drawTabs() {
    const { news } = this.people;
    if (this.tabs.childElementCount === 0) {
      const tabs = Object.entries(TABS).map(([name, label]) => {
        const click = () => this.open(name);
        const keydown = (/** @type {KeyboardEvent} */ event) => this.tabKey(event);
        return h("button", { type: "button", role: "tab", id: `tab-${name}`, click, keydown }, label);
      });
      this.tabs.append(...tabs);
      this.parts.panel.setAttribute("role", "tabpanel");
    }
    for (const tab of this.tabs.children) {
      const chosen = tab.id === `tab-${this.tab}`;
      tab.setAttribute("aria-selected", String(chosen));
      tab.setAttribute("tabindex", chosen ? "0" : "-1");
      if (tab.id === "tab-chat") tab.textContent = news ? `${TABS.chat} (${news})` : TABS.chat;
    }
    this.parts.panel.setAttribute("aria-labelledby", `tab-${this.tab}`);
  }

  /** @param {KeyboardEvent} event */
  tabKey(event) {
    const step = Number(event.key === "ArrowRight") - Number(event.key === "ArrowLeft");
    if (!step) return;
    const names = Object.keys(TABS);
    this.open(names[(names.indexOf(this.tab) + step + names.length) % names.length]);
    byId(`tab-${this.tab}`).focus();
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} tab */
  open(tab) {
    this.tab = tab;
    this.analysis.look();
    this.draw();
  }

  drawPanel() {
    const { panel } = this.parts;
    if (this.tab === "analysis") panel.replaceChildren(this.analysis.element());
    else if (this.tab === "share") panel.replaceChildren(this.sharing());
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
    // Asking for the layout now would hold the board up.
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
        "aria-label": `Ply ${ply}: ${this.mover(move)}`,
        click: () => this.show(ply),
      },
      move.name,
      this.analysis.isBlunder(number) && h("b", blunder, "?"),
    );
  }

  /** Say a move: who, and what. @param {Move} move */
  mover(move) {
    return `${this.colour(move.seat)} ${move.says}`;
  }

  sharing() {
    const { game, id, state } = this;
    const canRecord = (state.winner !== null || (state.over && state.told !== "")) && !state.from_position;
    const seated = state.you.length > 0;
    /** @type {(message: Wish, use: (text: string) => void) => void} */
    const fetchText = (message, use) => {
      this.app.link.say(message).then(use, (error) => toast(error.message));
    };
    /** @param {boolean} sgf */
    const record = (sgf) =>
      fetchText({ type: "record", sgf }, (text) => download(text, `${state.game}.${sgf ? "sgf" : "txt"}`));
    const position = () => fetchText({ type: "position", ply: this.ply }, (text) => copy(text, "Position"));
    const personal = () =>
      fetchText({ type: "key" }, (key) => copy(`${location.origin}/t/${id}#seat=${key}`, "Personal link"));
    const address = h("input", {
      type: "text",
      readonly: true,
      value: location.href,
      "aria-label": "Address of this table",
      focus: (event) => event.currentTarget.select(),
    });
    /** @type {(id: string, label: string, click: () => void, disabled?: boolean) => HTMLElement} */
    const button = (id, label, click, disabled = false) => h("button", { type: "button", id, disabled, click }, label);
    const onlyYours =
      "Your personal link takes your seat to another browser. " +
      "Keep it to yourself; a new one makes the last one void.";
    const whole = canRecord
      ? "The whole game as a record, which ninetka replay reads too:"
      : "When the game is over, its record can be downloaded here.";
    return h(
      "div",
      { class: "sharing" },
      h("p", {}, "Whoever opens this address can watch, and take an open seat."),
      h(
        "div",
        { class: "buttons" },
        address,
        button("copy-link", "Copy", () => copy(location.href, "Address")),
      ),
      seated && h("p", {}, onlyYours),
      seated && button("copy-personal", "Copy personal link", personal),
      h("p", {}, "The position on the board as text, to be opened on the first page:"),
      button("copy-position", "Copy position", position),
      h("p", {}, whole),
      button("download", "Download record", () => record(false), !canRecord),
      game.sgf && button("download-sgf", "Download SGF", () => record(true), !state.moves.length),
    );
  }
}

/**
 * @param {string} text
 * @param {string} name
 */
function download(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
