// A table: the board in the middle, who plays, what can be done, how the game went.

import { DRAWN, agentName, announce, capital, copy, h, list, toast } from "./dom.js";
import { Analysis } from "./analysis.js";
import { Board, seatIcon } from "./board.js";
import { People } from "./people.js";
import { Premove } from "./premove.js";
import { Timeline } from "./timeline.js";

const TABS = { moves: "Moves", analysis: "Analysis", share: "Share", chat: "Chat" };
const EVENTS = { resigned: "gave up", time: "lost on time", left: "left" };

export class TableView {
  constructor(main, app, id) {
    this.app = app;
    this.id = id;
    this.state = null;
    this.shown = null; // the ply that is looked at; null: the newest
    this.tab = "moves";
    this.main = main;
    this.invited = sessionStorage.getItem("ninetka-invited") === id; // who came by the address of the page
    this.timeline = new Timeline((ply) => this.show(ply), () => {
      this.board.turn();
      this.draw();
    });
    this.analysis = new Analysis(app, this);
    this.premove = new Premove(this);
    this.parts = Object.fromEntries(["seats", "controls", "panel"].map((name) => [name, h("div", { class: name })]));
    this.headline = h("h1", { class: "headline" }, h("span", {}));
    this.hint = h("p", { class: "hint" });
    this.people = new People(app, this);
    this.acts = h("div", { class: "acts" });
    this.tabs = h("div", { class: "tabs", role: "tablist" });
    this.onKey = (event) => this.key(event);
    this.onSight = () => this.analysis.look();
    document.addEventListener("keydown", this.onKey);
    document.addEventListener("visibilitychange", this.onSight);
  }

  /** Lay the table out, once it is known what is played. */
  lay(state) {
    this.game = this.app.game(state.game);
    this.app.about(this.game);
    this.board = new Board(state.game, state.config, (action) => this.play(action), (cell) => this.clickIdle(cell));
    scrollTo(0, 0);
    const [, , width, height] = this.board.face.box;
    document.documentElement.style.setProperty("--aspect", (width / height).toFixed(3));
    this.main.replaceChildren(h("div", { class: "table", "data-game": state.game },
      h("section", { class: "stage", "aria-label": "Game" }, h("div", { class: "status" }, this.headline, this.hint), this.board.element, this.board.text, this.acts, this.timeline.element),
      h("aside", { class: "side" }, this.parts.seats, this.parts.controls, this.tabs, this.parts.panel)));
    this.board.svg.focus({ preventScroll: true }); // what had the focus is gone
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

  /** Take in a new state of the table: it holds the moves from number `from` on. */
  update(state) {
    const before = this.state, wasMine = before ? this.isMyTurn : true;
    if (!state.start && !this.start) return; // meant for a page that was left meanwhile; the whole comes soon
    if (state.start) {
      this.start = state.start;
      this.moves = [];
    }
    this.moves = [...this.moves.slice(0, state.from), ...state.moves];
    state.moves = this.moves;
    this.state = state;
    this.people.update(state, this.isMyTurn, wasMine);
    if (!this.board) this.lay(state);
    if (before) this.premove.update(before);
    const goesOn = before && before.round === state.round;
    const isNew = goesOn && state.moves.length === before.moves.length + 1;
    if (!goesOn || (this.shown !== null && this.shown > state.moves.length)) this.shown = state.shown && !before ? 0 : null;
    this.draw(isNew && this.shown === null);
    if (before) this.tell(before, isNew);
    this.analysis.look();
  }

  hear(message) {
    if (message.type === "chat") this.people.hear(message);
    else this.analysis.hear(message);
  }

  /** What is to be seen now. */
  get ply() {
    return this.shown ?? this.state.moves.length;
  }

  /** The position that is looked at: the cells of the start with the changes of the moves up to it, and what is known. */
  get position() {
    const { state, ply, start } = this, { trial } = this.analysis;
    const played = [...state.moves.slice(0, ply), ...(trial?.moves ?? [])];
    const cells = [...start.cells], last = played.at(-1) ?? null, live = !trial && ply === state.moves.length;
    for (const move of played) for (const [cell, code] of move.cells) cells[cell] = code;
    const { scores, notes } = last ?? start;
    return {
      cells, last, live, ply, over: trial ? trial.over : live && state.over, toMove: trial ? trial.to_move : live ? state.to_move : state.moves[ply].seat,
      scores: live && state.over && state.proposal ? state.proposal.scores : scores, notes,
      proposal: live ? state.proposal : null, insight: this.analysis.insight,
    };
  }

  get isMyTurn() {
    const { state } = this;
    return !state.over && !state.settling && !state.shown && state.you.includes(state.to_move);
  }

  /** Look at the position after some plies; the newest one stays in view as the game goes on. */
  show(ply) {
    const newest = this.state.moves.length;
    const target = Math.max(0, Math.min(newest, ply));
    const forward = target === this.ply + 1;
    this.shown = target === newest ? null : target;
    this.draw(forward);
    this.analysis.look();
  }

  play(action) {
    const { line, trial } = this.analysis;
    if (trial) this.analysis.tryOut([...trial.line, action]);
    else if (!line && this.isMyTurn && this.shown === null) this.app.ask({ type: "play", ply: this.state.moves.length, action });
  }

  /** A click on the board when nothing can be played: it chooses a move to be played later, or does nothing; say why. */
  clickIdle(cell) {
    const { state } = this;
    if (this.premove.isOpen) this.premove.choose(cell);
    else if (!state.you.length || state.over || state.settling || this.analysis.line) return;
    else if (this.shown !== null) toast("You look at an earlier position: go to the newest to play");
    else if (!this.isMyTurn) toast(`It is ${this.game.colours[state.to_move]}'s turn`);
  }

  /** What is drawn on the board beside the position. */
  get marks() {
    const { marks = [], ...more } = this.analysis.marks;
    return { ...more, marks: [...marks, ...this.premove.marks] };
  }

  draw(animate = false) {
    const { state, position } = this, held = document.activeElement;
    const names = state.seats.map((_, seat) => this.nameOf(seat));
    document.title = this.isMyTurn ? `● Your turn – ${this.game.title}` : this.game.title;
    const mine = this.isMyTurn && this.shown === null;
    const choices = this.analysis.line ? this.analysis.trial : mine ? state : null; // what is tried is never played
    const waits = state.you.length > 0 && !state.over && !state.settling && this.shown === null && !this.analysis.line;
    this.board.draw(position, choices, { animate, waits, ...this.marks });
    this.timeline.draw(state, this.ply, this.analysis.band());
    this.drawStatus(position, names);
    this.drawActs(choices);
    this.parts.seats.replaceChildren(...state.seats.map((_, seat) => this.seatCard(position, seat, names)), ...this.people.questions());
    this.parts.controls.replaceChildren(...this.controls());
    this.drawTabs();
    this.drawPanel();
    this.keepFocus(held);
  }

  /** Leave the focus where it was, though all but the board is made anew; where that is gone the board has it. */
  keepFocus(held) {
    if (!held || held.isConnected) return;
    if (held.id) document.getElementById(held.id)?.focus({ preventScroll: true });
    if (document.activeElement === document.body) this.board.svg.focus({ preventScroll: true });
  }

  /** What can be played that has no place on the board; and the question how a finished game is counted. */
  drawActs(choices) {
    const act = ({ action, label, key }) => h("button", { type: "button", class: "act", id: `act-${key}`, title: `${label} (${key})`, click: () => this.play(action) }, label, " ", h("kbd", { "aria-hidden": "true" }, key));
    this.acts.replaceChildren(...(choices?.buttons.map(act) ?? []), ...this.settling());
  }

  settling() {
    const { state } = this;
    if (!state.settling || this.shown !== null) return [];
    if (!state.proposal || !state.you.length) return [];
    const answer = (id, type, label, classes = "") => h("button", { type: "button", id, class: classes, click: () => this.app.ask({ type, question: state.question }) }, label);
    return [h("div", { class: "question", role: "group", "aria-label": "How the game is counted" }, h("span", {}, state.proposal.say),
      state.accepted ? h("span", { class: "faint" }, "Waiting for the other side to agree.") : answer("accept", "accept", "Agree", "primary"), answer("play-on", "play_on", "Play on"))];
  }

  nameOf(seat) {
    const { kind, agent, name } = this.state.seats[seat];
    if (this.state.you.includes(seat)) return name || "You";
    if (kind === "agent") return name ? `${agentName(this.game, agent)} for ${name}` : agentName(this.game, agent);
    return kind === "open" ? "Open seat" : this.state.shown ? this.agentOrName(name) : name || "Guest";
  }

  agentOrName(name) {
    return this.game.agents.some((agent) => agent.name === name.split(":")[0]) ? agentName(this.game, name) : name;
  }

  colour(seat) {
    return capital(this.game.colours[seat]);
  }

  // What is said above the board

  /** Change only what is new, so that screen readers read that alone. */
  drawStatus(position, names) {
    const { state, headline } = this, [text, hint] = this.words(position, names);
    const seat = position.over ? state.winner : state.settling && position.live ? null : position.toMove;
    const icon = seat !== null && seat !== DRAWN && !(position.over && !position.live) ? seatIcon(state.game, seat) : null;
    headline.classList.toggle("mine", this.isMyTurn && position.live);
    if (headline.querySelector("svg")?.outerHTML !== icon?.outerHTML) headline.replaceChildren(...[icon, headline.lastChild].filter(Boolean));
    for (const [element, words] of [[headline.lastChild, text], [this.hint, hint]]) if (element.textContent !== words) element.textContent = words;
  }

  words(position, names) {
    const { state } = this;
    const gone = position.last?.passed ?? [];
    const passed = gone.length ? `${list(gone.map((seat) => this.colour(seat)))} cannot move and ${gone.length > 1 ? "are" : "is"} passed over. ` : "";
    const { trial } = this.analysis;
    if (trial) return [`Trying moves${trial.over ? ": the game would be over" : ""}`, `${trial.moves.length} tried after ply ${position.ply}; the game is not changed. ${trial.over ? "" : `${this.colour(position.toMove)} to move.`}`];
    if (position.over) return this.ending(passed);
    const { toMove } = position, colour = this.colour(toMove);
    if (!position.live) return [`After ${position.ply} of ${state.moves.length} plies`, `${position.last ? `${this.mover(position.last)}. ` : ""}${passed}${colour} to move.`];
    if (state.shown) return ["The record ends here", state.told ? `The file says: ${state.told}.` : "The game is not over."];
    if (state.settling) return ["The game is counted", state.proposal ? "Agree on the dead stones, or play on." : state.compiling ? "Compiling what counts it, once …" : "Looking for dead stones …"];
    const open = state.seats[toMove].kind === "open", mine = this.isMyTurn;
    const whose = mine ? (state.you.length > 1 ? `Your turn, ${this.game.colours[toMove]}` : "Your turn")
      : open ? `Waiting for somebody to play ${this.game.colours[toMove]}`
        : state.seats[toMove].agent ? (state.paused ? "Paused" : state.compiling ? `Compiling ${names[toMove]}, once …` : `${colour} is thinking …`) : `${names[toMove]}'s turn`;
    const invite = this.invited ? "They come by the same address as you." : state.you.length ? "Send them the address of this page, or sit down yourself." : "Sit down to play.";
    return [whose, this.premove.cell !== null ? this.premove.says : passed + (open ? invite : state.prompt[mine ? 0 : 1])];
  }

  ending(passed) {
    const { state } = this;
    const told = state.told ? ` The file says: ${state.told}.` : "";
    if (state.called_off) return ["Called off", "Somebody had left, and nobody has lost."];
    if (state.winner === null) return ["Given up", "The game ended before anybody won."];
    if (state.event) return [`${this.colour(state.winner)} wins`, `${this.colour(state.event.seat)} ${EVENTS[state.event.kind]}.`];
    if (state.winner === DRAWN) return ["Drawn", passed + state.outcome + told];
    const who = state.you.includes(state.winner) && state.you.length === 1 ? "You win" : `${this.colour(state.winner)} wins`;
    return [who, passed + state.outcome + told];
  }

  /** Tell screen readers what has happened. */
  tell(before, isNew) {
    const { state } = this;
    const last = state.moves.at(-1);
    const told = [];
    if (isNew && last) {
      told.push(`${this.mover(last)}.`);
      if (last.passed.length) told.push(`${list(last.passed.map((seat) => this.colour(seat)))} passed over.`);
    } else if (state.moves.length < before.moves.length && state.round === before.round) told.push("Moves were taken back.");
    if (state.over && !before.over) told.push(this.ending("")[0] + ".");
    else if (state.settling && state.proposal && !before.proposal) told.push(state.proposal.say);
    else if (this.isMyTurn && (isNew || !before.you.includes(before.to_move))) told.push("Your turn.");
    if (told.length) announce(told.join(" "));
  }

  // Who plays

  seatCard(position, seat, names) {
    const { state } = this;
    const active = position.over ? state.winner === seat : position.toMove === seat && !state.settling;
    const open = state.seats[seat].kind === "open" && !state.over;
    const word = position.over && state.proposal ? "points" : state.score_word, score = String(position.scores[seat]);
    return h("div", { class: `seat c${seat + 1}${active ? " active" : ""}` }, seatIcon(state.game, seat),
      h("div", { class: "person" }, h("b", {}, names[seat]), this.people.left(seat) ? h("span", { class: "faint", "data-left": seat }, this.people.left(seat)) : h("span", { class: "faint" }, this.seatNote(position, seat))),
      this.people.clockOf(seat),
      open ? h("button", { type: "button", class: "sit", click: () => this.sit(seat) }, "Sit here")
        : h("span", { class: "tally" }, h("span", { class: "score" }, score), " ", h("span", { class: "word" }, word)));
  }

  seatNote(position, seat) {
    const { state } = this;
    const colour = this.colour(seat) + (state.you.includes(seat) && state.seats[seat].name ? ", you" : "");
    if (state.event?.seat === seat) return `${colour} · ${EVENTS[state.event.kind]}`;
    if (state.resigned.includes(seat)) return `${colour} · ${state.seats[seat].agent ? "an agent plays on" : "gave up"}`;
    if (position.over) return state.winner === seat ? `${colour} · wins` : colour;
    return position.notes[seat] ? `${colour} · ${position.notes[seat]}` : colour;
  }

  sit(seat) {
    const keeps = this.state.seats.some((each) => each.keep);
    const form = h("form", { method: "dialog" },
      h("h2", {}, `Play ${this.game.colours[seat]}`),
      h("label", { class: "field" }, "Your name", h("input", { type: "text", name: "name", maxlength: 24, value: JSON.parse(localStorage.getItem("ninetka-form") ?? "{}").name ?? "", autocomplete: "nickname" })),
      keeps && h("label", { class: "agree" }, h("input", { type: "checkbox", name: "keep" }), h("span", {}, "The finished game may be kept in this server's statistics")),
      h("div", { class: "buttons" }, h("button", { class: "primary", value: "sit" }, "Sit down"), h("button", { value: "" }, "Just watch")));
    const dialog = h("dialog", { close: () => {
      this.invited = dialog.returnValue === "sit";
      if (this.invited) sessionStorage.setItem("ninetka-invited", this.id);
      if (this.invited) this.app.ask({ type: "sit", seat, name: form.elements.name.value.trim(), keep: form.elements.keep?.checked ?? false });
      dialog.remove();
    } }, form);
    document.body.append(dialog);
    dialog.showModal();
  }

  // What can be done

  controls() {
    const { state } = this;
    const button = (id, label, title, click, disabled = false) => h("button", { type: "button", id, title, disabled, click }, label);
    const seated = state.you.length > 0;
    const people = state.seats.some((seat) => seat.kind === "person");
    const others = state.seats.some(({ kind }, seat) => kind === "person" && !state.you.includes(seat));
    const hasAgent = state.seats.some((seat) => seat.agent);
    const moved = state.moves.some((move) => state.you.includes(move.seat));
    const row = [];
    if (seated && !state.over) {
      row.push(button("undo", "Take back", "Take back your last move (U)", () => this.app.ask({ type: "undo" }), !moved || Boolean(state.wish)));
      if (!others) row.push(button("hint-me", "Hint", "Show a good move (H)", () => this.analysis.askHint(), !this.isMyTurn));
      if (!state.settling) row.push(button("resign", "Give up", "End the game as a loss", () => confirm("Give this game up?") && this.app.ask({ type: "resign" })));
    }
    if (state.over && !state.shown && !state.wish && (seated || !people)) row.push(h("button", { type: "button", id: "rematch", class: "primary", title: "Everybody moves up a seat", click: () => this.app.ask({ type: "rematch" }) }, others ? "Ask for a rematch" : "Rematch, seats rotated"));
    if (hasAgent && !state.over && (seated || !people)) row.push(this.pace(others));
    row.push(h("a", { class: "button", href: "/" }, "New game"));
    if (seated) row.push(h("button", { type: "button", class: "quiet", id: "sound", title: "A sound when it is your turn", "aria-label": "Sound", "aria-pressed": String(this.people.sound), click: () => this.people.toggle() }, this.people.sound ? "♪" : "♪ off"));
    return row;
  }

  pace(others) {
    const { wait, paused } = this.state;
    const set = (change) => this.app.ask({ type: "pace", wait, paused, ...change });
    const speeds = [[2000, "slow"], [700, "normal"], [150, "fast"], [0, "at once"]];
    return h("span", { class: "pace" },
      (paused || !others) && h("button", { type: "button", id: "pause", "aria-pressed": String(paused), click: () => set({ paused: !paused }) }, paused ? "▶ Go on" : "❚❚ Pause"),
      h("select", { id: "speed", "aria-label": "Speed of the agents", change: (event) => set({ wait: Number(event.target.value) }) },
        speeds.map(([value, label]) => h("option", { value, selected: value === wait }, label))));
  }

  key(event) {
    if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey || !this.state) return;
    const { state } = this, newest = state.moves.length;
    const to = { ",": this.ply - 1, ".": this.ply + 1, ArrowLeft: this.ply - 1, ArrowRight: this.ply + 1, Home: 0, End: newest }[event.key];
    if ([",", "ArrowLeft"].includes(event.key) && this.analysis.stepBack()) { /* the latest of the moves that are tried */ }
    else if (to !== undefined) this.show(to);
    else if (event.key === "Escape" && this.analysis.line) this.analysis.tryOut(null);
    else if (event.key === "Escape" && this.premove.drop()) { /* what was chosen for later */ }
    else if (event.key.toUpperCase() === "H") document.getElementById("hint-me")?.click();
    else if (event.key.toUpperCase() === "U") document.getElementById("undo")?.click();
    else if (document.getElementById(`act-${event.key.toUpperCase()}`)) document.getElementById(`act-${event.key.toUpperCase()}`).click();
    else return;
    event.preventDefault();
  }

  // The panel

  drawTabs() {
    if (this.tabs.childElementCount === 0) {
      this.tabs.append(...Object.entries(TABS).map(([name, label]) => h("button", {
        type: "button", role: "tab", id: `tab-${name}`, click: () => this.open(name), keydown: (event) => this.tabKey(event),
      }, label)));
      this.parts.panel.setAttribute("role", "tabpanel");
    }
    for (const tab of this.tabs.children) {
      const chosen = tab.id === `tab-${this.tab}`;
      tab.setAttribute("aria-selected", String(chosen));
      tab.setAttribute("tabindex", chosen ? 0 : -1);
      if (tab.id === "tab-chat") tab.textContent = this.people.news ? `${TABS.chat} (${this.people.news})` : TABS.chat;
    }
    this.parts.panel.setAttribute("aria-labelledby", `tab-${this.tab}`);
  }

  tabKey(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const names = Object.keys(TABS);
    this.open(names[(names.indexOf(this.tab) + step + names.length) % names.length]);
    document.getElementById(`tab-${this.tab}`).focus();
    event.preventDefault();
    event.stopPropagation();
  }

  open(tab) {
    this.tab = tab;
    this.analysis.look();
    this.draw();
  }

  drawPanel() {
    const { panel } = this.parts;
    if (this.tab === "analysis") panel.replaceChildren(this.analysis.element());
    else if (this.tab === "share") panel.replaceChildren(this.sharing());
    else if (this.tab === "chat") panel.firstChild !== this.people.panel() && panel.replaceChildren(this.people.panel());
    else this.drawMoves(panel);
  }

  drawMoves(panel) {
    const { state } = this, moves = h("div", { class: "moves" });
    let stage = "";
    state.moves.forEach((move, number) => {
      if (move.stage !== stage) {
        stage = move.stage;
        moves.append(h("h2", {}, this.game.stages[stage]));
      }
      const ply = number + 1;
      moves.append(h("button", {
        type: "button", id: `ply-${ply}`, class: `move c${move.seat + 1}`, "aria-current": ply === this.ply ? "step" : null, "aria-label": `Ply ${ply}: ${this.mover(move)}`, click: () => this.show(ply),
      }, move.name, this.analysis.isBlunder(number) && h("b", { class: "blunder", title: "This move threw a win away", "aria-label": ", threw a win away" }, "?")));
      for (const seat of move.passed) moves.append(h("span", { class: `pass c${seat + 1}`, title: `${this.game.colours[seat]} cannot move` }, "(pass)"));
    });
    if (!state.moves.length) moves.append(h("p", { class: "faint" }, "The moves will be listed here."));
    panel.replaceChildren(moves);
    const current = moves.querySelector("[aria-current]");
    // Asking for the layout now would hold the board up.
    if (current) requestAnimationFrame(() => { panel.scrollTop = current.offsetTop - panel.clientHeight / 2; });
  }

  /** Say a move: who, and what. */
  mover(move) {
    return `${this.colour(move.seat)} ${move.says}`;
  }

  sharing() {
    const { state } = this;
    const record = (sgf) => this.app.link.say({ type: "record", sgf }).then((text) => download(text, `${state.game}.${sgf ? "sgf" : "txt"}`), (error) => toast(error.message));
    const position = () => this.app.link.say({ type: "position", ply: this.ply }).then((text) => copy(text, "Position"), (error) => toast(error.message));
    const personal = () => this.app.link.say({ type: "key" }).then((key) => copy(`${location.origin}/t/${this.id}#seat=${key}`, "Personal link"), (error) => toast(error.message));
    const canRecord = state.winner !== null && !state.from_position;
    return h("div", { class: "sharing" },
      h("p", {}, "Whoever opens this address can watch, and take an open seat."),
      h("div", { class: "buttons" }, h("input", { type: "text", readonly: true, value: location.href, "aria-label": "Address of this table", focus: (event) => event.target.select() }),
        h("button", { type: "button", id: "copy-link", click: () => copy(location.href, "Address") }, "Copy")),
      state.you.length > 0 && h("p", {}, "Your personal link takes your seat to another browser. Keep it to yourself; a new one makes the last one void."),
      state.you.length > 0 && h("button", { type: "button", id: "copy-personal", click: personal }, "Copy personal link"),
      h("p", {}, "The position on the board as text, to be opened on the first page:"),
      h("button", { type: "button", id: "copy-position", click: position }, "Copy position"),
      h("p", {}, canRecord ? "The whole game as a record, which ninetka replay reads too:" : "When the game is over, its record can be downloaded here."),
      h("button", { type: "button", id: "download", disabled: !canRecord, click: () => record(false) }, "Download record"),
      this.game.sgf && h("button", { type: "button", id: "download-sgf", disabled: !state.moves.length, click: () => record(true) }, "Download SGF"));
  }
}

function download(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
