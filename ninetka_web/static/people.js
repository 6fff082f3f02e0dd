// The others at a table: who has left, clocks, what is asked of each other, what is said, and a sound for one's turn.

import { announce, h, toast } from "./dom.js";

const read = (name) => localStorage.getItem(`ninetka-${name}`) !== "off";
const time = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
let audio = null;

/** Two short notes; browsers that make no sound before a click stay silent until then. */
function ring() {
  audio ??= new AudioContext();
  [660, 880].forEach((pitch, number) => {
    const note = audio.createOscillator(), volume = audio.createGain(), begin = audio.currentTime + 0.09 * number;
    note.frequency.value = pitch;
    volume.gain.setValueAtTime(0.06, begin);
    volume.gain.exponentialRampToValueAtTime(0.001, begin + 0.15);
    note.connect(volume).connect(audio.destination);
    note.start(begin);
    note.stop(begin + 0.15);
  });
}

export class People {
  constructor(app, view) {
    this.app = app;
    this.view = view;
    this.sound = read("sound");
    this.chat = read("chat");
    this.lines = [];
    this.unread = 0;
    this.timer = setInterval(() => this.tick(), 200);
  }

  close() {
    clearInterval(this.timer);
  }

  /** Take in a state: its clocks and its people run on from now. */
  update(state, isMine, wasMine) {
    this.since = performance.now();
    this.claimable = this.missing.length;
    if (isMine && !wasMine && this.sound) ring();
  }

  /** Seconds since the server told of them. */
  get passed() {
    return (performance.now() - this.since) / 1000;
  }

  /** What a seat's clock shows. */
  clock(seat) {
    const { clock } = this.view.state;
    const left = clock.left[seat] - (clock.running === seat ? this.passed : 0);
    return left < 10 && left > 0 ? `0:0${left.toFixed(1)}` : time(Math.max(0, left));
  }

  clockOf(seat) {
    const { clock, seats } = this.view.state;
    if (!clock || seats[seat].agent) return null;
    return h("span", { class: `clock${clock.running === seat ? " runs" : ""}`, "data-clock": seat, role: "timer" }, this.clock(seat));
  }

  /** How long a seat's person has to come back; null while they are here. */
  rest(seat) {
    const { away, over } = this.view.state;
    return seat in away ? (over ? 0 : Math.max(0, away[seat] - this.passed)) : null;
  }

  /** What is said of a seat whose person has left. */
  left(seat) {
    const rest = this.rest(seat);
    return rest === null ? "" : rest > 0 ? `has left, ${time(Math.ceil(rest))} to come back` : "has left";
  }

  /** The seats of people who have been away for too long while a game runs. */
  get missing() {
    const { over, settling, proposal, you, seats } = this.view.state;
    return over || !you.length || (settling && !proposal) ? [] : seats.map((_, seat) => seat).filter((seat) => this.rest(seat) === 0);
  }

  tick() {
    if (!this.view.board) return;
    for (const clock of document.querySelectorAll("[data-clock]")) {
      const text = this.clock(Number(clock.dataset.clock));
      if (clock.textContent !== text) clock.textContent = text;
      clock.classList.toggle("low", text.includes("."));
    }
    for (const note of document.querySelectorAll("[data-left]")) note.textContent = this.left(Number(note.dataset.left));
    if (this.missing.length !== this.claimable) {
      this.claimable = this.missing.length;
      this.view.draw();
    }
  }

  /** What is asked, of this person or of others. */
  questions() {
    const { state } = this.view;
    const act = (message, label, classes = "") => h("button", { type: "button", class: classes, click: () => this.app.ask(message) }, label);
    const answer = (accept, label) => act({ type: "answer", accept, question: state.question }, label, accept ? "primary" : "");
    const wish = state.wish === "undo" ? `take the game back to ply ${state.undo}` : "play again";
    const shown = [];
    if (state.asked) shown.push(h("p", { class: "question" }, `Do you agree to ${wish}? `, answer(true, "Agree"), answer(false, "Refuse")));
    else if (state.wish) shown.push(h("p", { class: "question" }, `Waiting for the others to agree to ${wish}.`));
    const { missing } = this, people = state.seats.filter(({ kind }, seat) => kind === "person" && !state.you.includes(seat)).length;
    if (missing.length) shown.push(h("p", { class: "question" }, `${missing.map((seat) => this.view.nameOf(seat)).join(", ")} did not come back. `,
      act({ type: "claim", win: true }, state.settling ? "Count it as proposed" : state.seats.length > 2 ? "Let an agent play on" : "Take the win", "primary"),
      people === missing.length && act({ type: "claim", win: false }, "Call it off")));
    return shown;
  }

  toggle() {
    this.sound = !this.sound;
    localStorage.setItem("ninetka-sound", this.sound ? "on" : "off");
    if (this.sound) ring();
    this.view.draw();
  }

  // What is said

  hear({ lines, new: isNew }) {
    this.lines = [...(isNew ? this.lines : []), ...lines].slice(-50);
    if (isNew && this.chat) {
      const [{ who, text }] = lines;
      announce(`${who}: ${text}`);
      if (this.view.tab !== "chat") this.unread++;
    }
    if (this.view.board) this.view.drawTabs();
    this.drawLines();
  }

  /** How many lines have not been looked at. */
  get news() {
    if (this.view.tab === "chat") this.unread = 0;
    return this.unread;
  }

  drawLines() {
    if (!this.list) return;
    this.list.replaceChildren(...this.lines.map(({ who, text }) => h("li", {}, h("b", {}, who), " ", text)));
    this.list.scrollTop = this.list.scrollHeight;
  }

  /** The panel, made once: what is being written stays. */
  panel() {
    if (this.box) return this.box;
    const field = h("input", { type: "text", id: "say", maxlength: 200, autocomplete: "off", "aria-label": "Say something", placeholder: "Say something to the table" });
    const send = (event) => {
      event.preventDefault();
      if (field.value.trim()) this.app.link.say({ type: "say", text: field.value }).then(() => { field.value = ""; }, (error) => toast(error.message));
    };
    this.list = h("ul", { class: "lines" });
    const form = h("form", { class: "buttons", submit: send }, field, h("button", { id: "send" }, "Send"));
    const hide = () => { this.list.hidden = form.hidden = !this.chat; };
    const change = (event) => {
      this.chat = event.target.checked;
      localStorage.setItem("ninetka-chat", this.chat ? "on" : "off");
      hide();
    };
    this.box = h("div", { class: "chat" }, this.list, form,
      h("label", { class: "agree" }, h("input", { type: "checkbox", checked: this.chat, change }), h("span", {}, "Show what is said. Nobody writes it down: it is gone when the server stops.")));
    hide();
    this.drawLines();
    return this.box;
  }
}
