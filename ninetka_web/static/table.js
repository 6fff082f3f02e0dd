// A table: the board in the middle, who plays, what can be done, how the game went.

import { announce, copy, h, toast } from "./dom.js";
import { Analysis } from "./analysis.js";
import { Board, stoneIcon } from "./board.js";
import { COLOURS, DRAWN, PASS, agentName, capital, moveName, phaseOf, positionAt, scoresOf, squareName, stonesLeft } from "./rules.js";
import { Timeline } from "./timeline.js";

const TABS = { moves: "Moves", analysis: "Analysis", share: "Share" };
const EVENTS = { resigned: "gave up", time: "lost on time", left: "left" };

export class TableView {
  constructor(main, app, id) {
    this.app = app;
    this.id = id;
    this.state = null;
    this.shown = null; // the ply that is looked at; null: the newest
    this.tab = "moves";
    this.board = new Board((action) => this.play(action));
    this.timeline = new Timeline((ply) => this.show(ply));
    this.analysis = new Analysis(app, this);
    this.parts = Object.fromEntries(["status", "seats", "controls", "panel"].map((name) => [name, h("div", { class: name })]));
    this.tabs = h("div", { class: "tabs", role: "tablist" });
    this.element = h("div", { class: "table" },
      h("section", { class: "stage", "aria-label": "Game" }, this.parts.status, h("div", { class: "holder" }, this.board.element), this.board.text, this.timeline.element),
      h("aside", { class: "side" }, this.parts.seats, this.parts.controls, this.tabs, this.parts.panel));
    main.replaceChildren(this.element);
    this.onKey = (event) => this.key(event);
    this.onSight = () => this.analysis.look();
    document.addEventListener("keydown", this.onKey);
    document.addEventListener("visibilitychange", this.onSight);
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("visibilitychange", this.onSight);
    this.analysis.rest();
    this.closed = true;
  }

  reset() {
    this.shown = null;
  }

  /** Take in a new state of the table. */
  update(state) {
    const before = this.state;
    this.state = state;
    const goesOn = before && before.round === state.round;
    const isNew = goesOn && state.moves.length === before.moves.length + 1;
    if (!goesOn || (this.shown !== null && this.shown > state.moves.length)) this.shown = state.shown && !before ? 0 : null;
    this.draw(isNew && this.shown === null);
    if (before) this.tell(before, isNew);
    this.analysis.look();
  }

  hear(message) {
    this.analysis.hear(message);
  }

  /** What is to be seen now. */
  get ply() {
    return this.shown ?? this.state.moves.length;
  }

  get position() {
    return positionAt(this.state, this.ply);
  }

  get isMyTurn() {
    const { state } = this;
    return !state.over && state.you.includes(state.to_move);
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
    if (this.isMyTurn && this.shown === null) this.app.ask({ type: "play", ply: this.state.moves.length, action });
  }

  draw(animate = false) {
    const { state, position } = this;
    const names = state.seats.map((_, seat) => this.nameOf(seat));
    document.title = this.isMyTurn ? "● Your turn – 9tka" : "9tka";
    const legal = this.isMyTurn && this.shown === null ? state.legal : [];
    this.board.draw(position, { legal, animate, heat: this.analysis.heat(this.ply), lost: this.analysis.thrown });
    this.timeline.draw(state, this.ply, this.analysis.band());
    this.parts.status.replaceChildren(...this.status(position, names));
    this.parts.seats.replaceChildren(...state.seats.map((_, seat) => this.seatCard(position, seat, names)), ...this.question());
    this.parts.controls.replaceChildren(...this.controls());
    this.drawTabs();
    this.drawPanel();
  }

  nameOf(seat) {
    const { kind, agent, name } = this.state.seats[seat];
    if (this.state.you.includes(seat)) return name || "You";
    if (kind === "agent") return name ? `${agentName(agent)} for ${name}` : agentName(agent);
    return kind === "open" ? "Open seat" : this.state.shown ? agentOrName(name) : name || "Guest";
  }

  // What is said above the board

  status(position, names) {
    const { state } = this;
    const [headline, hint] = this.words(position, names);
    const seat = position.over ? state.winner : position.toMove;
    const past = !position.live;
    return [
      h("p", { class: `headline${this.isMyTurn && !past ? " mine" : ""}` }, seat !== null && seat !== DRAWN && stoneIcon(seat), h("span", {}, headline)),
      h("p", { class: "hint" }, hint),
    ];
  }

  words(position, names) {
    const { state } = this;
    const passed = position.last?.passed.length ? `${list(position.last.passed.map((seat) => capital(COLOURS[seat])))} cannot slide and ${position.last.passed.length > 1 ? "are" : "is"} passed over. ` : "";
    if (position.over) return this.ending(passed);
    const colour = capital(COLOURS[position.toMove]);
    if (!position.live) return [`After ${position.ply} of ${state.moves.length} plies`, `${position.last ? `${mover(position.last)}. ` : ""}${passed}${colour} to move.`];
    const left = stonesLeft(position, position.toMove, state.seats.length);
    const mine = this.isMyTurn;
    const hints = {
      neutral: mine ? "Put a neutral stone on a marked square: one in each section." : "Neutral stones are being placed, one in each section.",
      placement: mine ? `Put one of your stones on the edge; ${left.toPlace} to go.` : `${left.toPlace} stones to go.`,
      movement: mine ? "Slide a stone with an arrow: it runs until something stops it, and stays there." : `${left.movable} ${left.movable === 1 ? "stone" : "stones"} can slide.`,
    };
    const open = state.seats[position.toMove].kind === "open";
    const whose = mine ? (state.you.length > 1 ? `Your turn, ${COLOURS[position.toMove]}` : "Your turn")
      : open ? `Waiting for somebody to play ${COLOURS[position.toMove]}`
        : state.seats[position.toMove].agent ? (state.paused ? "Paused" : state.compiling ? `Compiling ${names[position.toMove]}, once …` : `${colour} is thinking …`) : `${names[position.toMove]}'s turn`;
    return [whose, passed + (open ? "Send them the address of this page, or sit down yourself." : hints[position.phase])];
  }

  ending(passed) {
    const { state } = this;
    if (state.winner === null) return ["Given up", "The game ended before anybody won."];
    if (state.event) return [`${capital(COLOURS[state.winner])} wins`, `${capital(COLOURS[state.event.seat])} ${EVENTS[state.event.kind]}.`];
    const scores = scoresOf(this.position.owners, state.seats.length);
    const told = scores.map((score, seat) => `${capital(COLOURS[seat])} ${score}`).join(", ");
    if (state.winner === DRAWN) return ["Drawn", `${passed}${told}.`];
    const best = scores[state.winner];
    const tied = scores.filter((score) => score === best).length > 1;
    const who = state.you.includes(state.winner) ? "You win" : `${capital(COLOURS[state.winner])} wins`;
    return [who, `${passed}${told}.${tied ? " Among equals the last in the order of play wins." : ""}`];
  }

  /** Tell screen readers what has happened. */
  tell(before, isNew) {
    const { state } = this;
    const last = state.moves.at(-1);
    const told = [];
    if (isNew && last) {
      told.push(`${mover(last)}.`);
      if (last.passed.length) told.push(`${list(last.passed.map((seat) => capital(COLOURS[seat])))} passed over.`);
    } else if (state.moves.length < before.moves.length && state.round === before.round) told.push("Moves were taken back.");
    if (state.over && !before.over) told.push(this.ending("")[0] + ".");
    else if (this.isMyTurn && (isNew || !before.you.includes(before.to_move))) told.push("Your turn.");
    if (told.length) announce(told.join(" "));
  }

  // Who plays

  seatCard(position, seat, names) {
    const { state } = this;
    const scores = scoresOf(position.owners, state.seats.length);
    const active = position.over ? state.winner === seat : position.toMove === seat;
    const open = state.seats[seat].kind === "open" && !state.over;
    return h("div", { class: `seat c${seat + 1}${active ? " active" : ""}` }, stoneIcon(seat),
      h("div", { class: "person" }, h("b", {}, names[seat]), h("span", { class: "faint" }, this.seatNote(position, seat))),
      open ? h("button", { type: "button", class: "sit", click: () => this.sit(seat) }, "Sit here")
        : h("span", { class: "score", "aria-label": `${scores[seat]} sections`, title: "sections owned" }, String(scores[seat])));
  }

  seatNote(position, seat) {
    const { state } = this;
    const colour = capital(COLOURS[seat]) + (state.you.includes(seat) && state.seats[seat].name ? ", you" : "");
    if (state.resigned.includes(seat)) return `${colour} · gave up`;
    if (position.over) return state.winner === seat ? `${colour} · wins` : colour;
    if (position.phase === "neutral") return colour;
    const left = stonesLeft(position, seat, state.seats.length);
    if (position.phase === "placement") return `${colour} · ${left.toPlace} to place`;
    return `${colour} · ${left.movable ? `${left.movable} can slide` : "cannot slide"}`;
  }

  sit(seat) {
    const keeps = this.state.seats.some((each) => each.keep);
    const form = h("form", { method: "dialog" },
      h("h2", {}, `Play ${COLOURS[seat]}`),
      h("label", { class: "field" }, "Your name", h("input", { type: "text", name: "name", maxlength: 24, value: JSON.parse(localStorage.getItem("ninetka-form") ?? "{}").name ?? "", autocomplete: "nickname" })),
      keeps && h("label", { class: "agree" }, h("input", { type: "checkbox", name: "keep" }), h("span", {}, "The finished game may be kept in this server's statistics")),
      h("div", { class: "buttons" }, h("button", { class: "primary", value: "sit" }, "Sit down"), h("button", { value: "" }, "Just watch")));
    const dialog = h("dialog", { close: () => {
      if (dialog.returnValue === "sit") this.app.ask({ type: "sit", seat, name: form.elements.name.value.trim(), keep: form.elements.keep?.checked ?? false });
      dialog.remove();
    } }, form);
    document.body.append(dialog);
    dialog.showModal();
  }

  /** Another person's wish to take back, to be answered. */
  question() {
    const { state } = this;
    if (state.undo < 0) return [];
    if (!state.asked) return [h("p", { class: "question" }, "Waiting for the others to agree to take back.")];
    const answer = (accept, label) => h("button", { type: "button", click: () => this.app.ask({ type: "answer", accept }) }, label);
    return [h("p", { class: "question" }, `Take the game back to ply ${state.undo}? `, answer(true, "Agree"), answer(false, "Refuse"))];
  }

  // What can be done

  controls() {
    const { state } = this;
    const button = (id, label, title, click, disabled = false) => h("button", { type: "button", id, title, disabled, click }, label);
    const seated = state.you.length > 0;
    const people = state.seats.some((seat) => seat.kind === "person");
    const hasAgent = state.seats.some((seat) => seat.agent);
    const moved = state.moves.some((move) => state.you.includes(move.seat));
    const row = [];
    if (seated && !state.over) {
      row.push(button("undo", "Take back", "Take back your last move (U)", () => this.app.ask({ type: "undo" }), !moved));
      row.push(button("resign", "Give up", "End the game as a loss", () => confirm("Give this game up?") && this.app.ask({ type: "resign" })));
    }
    if (state.over && !state.shown && (seated || !people)) row.push(h("button", { type: "button", id: "rematch", class: "primary", title: "Everybody moves up a seat", click: () => this.app.ask({ type: "rematch" }) }, "Rematch, seats rotated"));
    if (hasAgent && !state.over && (seated || !people)) row.push(this.pace());
    row.push(h("a", { class: "button", href: "/" }, "New game"));
    return row;
  }

  pace() {
    const { wait, paused } = this.state;
    const set = (change) => this.app.ask({ type: "pace", wait, paused, ...change });
    const speeds = [[2000, "slow"], [700, "normal"], [150, "fast"], [0, "at once"]];
    return h("span", { class: "pace" },
      h("button", { type: "button", id: "pause", "aria-pressed": String(paused), click: () => set({ paused: !paused }) }, paused ? "▶ Go on" : "❚❚ Pause"),
      h("select", { id: "speed", "aria-label": "Speed of the agents", change: (event) => set({ wait: Number(event.target.value) }) },
        speeds.map(([value, label]) => h("option", { value, selected: value === wait }, label))));
  }

  key(event) {
    if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey || !this.state) return;
    const newest = this.state.moves.length;
    const to = { ",": this.ply - 1, ".": this.ply + 1, ArrowLeft: this.ply - 1, ArrowRight: this.ply + 1, Home: 0, End: newest }[event.key];
    if (to !== undefined) this.show(to);
    else if (event.key === "u" || event.key === "U") this.app.ask({ type: "undo" });
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
    else this.drawMoves(panel);
  }

  drawMoves(panel) {
    const list = h("div", { class: "moves" });
    let phase = "";
    this.state.moves.forEach((move, number) => {
      if (phaseOf(move) !== phase) {
        phase = phaseOf(move);
        list.append(h("h3", {}, { neutral: "Neutral stones", placement: "Placement", movement: "Slides" }[phase]));
      }
      const ply = number + 1;
      list.append(h("button", {
        type: "button", class: `move c${move.seat + 1}`, "aria-current": ply === this.ply ? "step" : null, "aria-label": `Ply ${ply}: ${mover(move)}`, click: () => this.show(ply),
      }, moveName(move), this.analysis.isBlunder(number) && h("b", { class: "blunder", title: "This move threw a win away", "aria-label": ", threw a win away" }, "?")));
      for (const seat of move.passed) list.append(h("span", { class: `pass c${seat + 1}`, title: `${COLOURS[seat]} cannot slide` }, "(pass)"));
    });
    if (!this.state.moves.length) list.append(h("p", { class: "faint" }, "The moves will be listed here."));
    panel.replaceChildren(list);
    const current = list.querySelector("[aria-current]");
    // Asking for the layout now would hold the board up.
    if (current) requestAnimationFrame(() => { panel.scrollTop = current.offsetTop - panel.clientHeight / 2; });
  }

  sharing() {
    const { state } = this;
    const record = () => this.app.link.say({ type: "record" }).then((text) => download(text), (error) => toast(error.message));
    const position = () => this.app.link.say({ type: "position", ply: this.ply }).then((text) => copy(text, "Position"), (error) => toast(error.message));
    const canRecord = state.winner !== null && !state.from_position;
    return h("div", { class: "sharing" },
      h("p", {}, "Whoever opens this address can watch, and take an open seat."),
      h("div", { class: "buttons" }, h("input", { type: "text", readonly: true, value: location.href, "aria-label": "Address of this table", focus: (event) => event.target.select() }),
        h("button", { type: "button", id: "copy-link", click: () => copy(location.href, "Address") }, "Copy")),
      h("p", {}, "The position on the board as text, to be opened on the first page:"),
      h("button", { type: "button", id: "copy-position", click: position }, "Copy position"),
      h("p", {}, canRecord ? "The whole game as a record, which ninetka replay reads too:" : "When the game is over, its record can be downloaded here."),
      h("button", { type: "button", id: "download", disabled: !canRecord, click: record }, "Download record"));
  }
}

function download(text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  h("a", { href: url, download: "9tka.txt" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Say a move: who, from where to where. */
function mover(move) {
  const who = capital(COLOURS[move.seat]);
  if (move.action === PASS) return `${who} passes`;
  const phase = phaseOf(move);
  if (phase === "neutral") return `${who} puts a neutral stone on ${squareName(move.to)}`;
  if (phase === "placement") return `${who} puts a stone on ${squareName(move.to)}`;
  return `${who} slides ${squareName(move.action)} to ${squareName(move.to)}`;
}

const list = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0]);
const agentOrName = (name) => (/^(random|maxn|mcts|net)\b/.test(name) ? agentName(name) : name);
