// The others at a table: who has left, clocks, what is asked of each other, what is said, and a sound for one's turn.

import { announce, h, toast } from "./dom.js";

/**
 * @import { App, Chat, ChatLine, Wish } from "../../tools/page/types"
 * @import { TableView } from "./table.js"
 */

/** @param {string} name */
const read = (name) => localStorage.getItem(`ninetka-${name}`) !== "off";
/** @param {number} seconds */
const time = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
/** @type {AudioContext | null} */
let audio = null;

/** Two short notes; browsers that make no sound before a click stay silent until then. */
function ring() {
  audio ??= new AudioContext();
  const { currentTime, destination } = audio;
  for (const [number, pitch] of [660, 880].entries()) {
    const note = audio.createOscillator();
    const volume = audio.createGain();
    const begin = currentTime + 0.09 * number;
    note.frequency.value = pitch;
    volume.gain.setValueAtTime(0.06, begin);
    volume.gain.exponentialRampToValueAtTime(0.001, begin + 0.15);
    note.connect(volume).connect(destination);
    note.start(begin);
    note.stop(begin + 0.15);
  }
}

export class People {
  /**
   * @param {App} app
   * @param {TableView} view
   */
  constructor(app, view) {
    this.app = app;
    this.view = view;
    this.sound = read("sound");
    this.chat = read("chat");
    /** @type {ChatLine[]} */
    this.lines = [];
    this.list = h("ul", { class: "lines" });
    /** @type {HTMLElement | null} */
    this.box = null;
    this.unread = 0;
    this.since = 0;
    this.claimable = 0;
    this.timer = setInterval(() => this.tick(), 200);
  }

  close() {
    clearInterval(this.timer);
  }

  /**
   * Take in a state: its clocks and its people run on from now.
   * @param {boolean} isMine
   * @param {boolean} wasMine
   */
  update(isMine, wasMine) {
    this.since = performance.now();
    this.claimable = this.missing.length;
    if (isMine && !wasMine && this.sound) ring();
  }

  /** Seconds since the server told of them. */
  get passed() {
    return (performance.now() - this.since) / 1000;
  }

  /** What a seat's clock shows, empty without clocks. @param {number} seat */
  clock(seat) {
    const { clock } = this.view.state;
    if (!clock) return "";
    const left = clock.left[seat] - (clock.running === seat ? this.passed : 0);
    return left < 10 && left > 0 ? `0:0${left.toFixed(1)}` : time(Math.max(0, left));
  }

  /** @param {number} seat */
  clockOf(seat) {
    const { clock, seats } = this.view.state;
    if (!clock || seats[seat].agent) return null;
    const classes = `clock${clock.running === seat ? " runs" : ""}`;
    return h("span", { class: classes, "data-clock": seat, role: "timer" }, this.clock(seat));
  }

  /** How long a seat's person has to come back; null while they are here. @param {number} seat */
  rest(seat) {
    const { away, over } = this.view.state;
    if (!(seat in away)) return null;
    return over ? 0 : Math.max(0, away[seat] - this.passed);
  }

  /** What is said of a seat whose person has left. @param {number} seat */
  left(seat) {
    const rest = this.rest(seat);
    if (rest === null) return "";
    return rest > 0 ? `has left, ${time(Math.ceil(rest))} to come back` : "has left";
  }

  /** The seats of people who have been away for too long while a game runs. */
  get missing() {
    const { over, settling, proposal, you, seats } = this.view.state;
    if (over || !you.length || (settling && !proposal)) return [];
    return seats.map((_, seat) => seat).filter((seat) => this.rest(seat) === 0);
  }

  tick() {
    if (!this.view.laid) return;
    /** @type {NodeListOf<HTMLElement>} */
    const clocks = document.querySelectorAll("[data-clock]");
    for (const clock of clocks) {
      const text = this.clock(Number(clock.dataset.clock));
      if (clock.textContent !== text) clock.textContent = text;
      clock.classList.toggle("low", text.includes("."));
    }
    /** @type {NodeListOf<HTMLElement>} */
    const notes = document.querySelectorAll("[data-left]");
    for (const note of notes) note.textContent = this.left(Number(note.dataset.left));
    if (this.missing.length !== this.claimable) {
      this.claimable = this.missing.length;
      this.view.draw();
    }
  }

  /** What is asked, of this person or of others. */
  questions() {
    const { missing } = this;
    const { state } = this.view;
    /** @type {(message: Wish, label: string, classes?: string) => HTMLElement} */
    const act = (message, label, classes = "") =>
      h("button", { type: "button", class: classes, click: () => this.app.ask(message) }, label);
    /** @type {(accept: boolean, label: string) => HTMLElement} */
    const answer = (accept, label) =>
      act({ type: "answer", accept, question: state.question }, label, accept ? "primary" : "");
    const wish = state.wish === "undo" ? `take the game back to ply ${state.undo}` : "play again";
    const question = { class: "question" };
    const shown = [];
    if (state.asked) {
      shown.push(h("p", question, `Do you agree to ${wish}? `, answer(true, "Agree"), answer(false, "Refuse")));
    } else if (state.wish) shown.push(h("p", question, `Waiting for the others to agree to ${wish}.`));
    if (missing.length) {
      const people = state.seats.filter(({ kind }, seat) => kind === "person" && !state.you.includes(seat)).length;
      const names = missing.map((seat) => this.view.nameOf(seat)).join(", ");
      const goOn = state.seats.length > 2 ? "Let an agent play on" : "Take the win";
      const win = act({ type: "claim", win: true }, state.settling ? "Count it as proposed" : goOn, "primary");
      const stop = people === missing.length && act({ type: "claim", win: false }, "Call it off");
      shown.push(h("p", question, `${names} did not come back. `, win, stop));
    }
    return shown;
  }

  toggle() {
    this.sound = !this.sound;
    localStorage.setItem("ninetka-sound", this.sound ? "on" : "off");
    if (this.sound) ring();
    this.view.draw();
  }

  // What is said

  /** @param {Chat} message */
  hear({ lines, new: isNew = false }) {
    this.lines = [...(isNew ? this.lines : []), ...lines].slice(-50);
    if (isNew && this.chat) {
      const [{ who, text }] = lines;
      announce(`${who}: ${text}`);
      if (this.view.tab !== "chat") this.unread++;
    }
    if (this.view.laid) this.view.drawTabs();
    this.drawLines();
  }

  /** How many lines have not been looked at. */
  get news() {
    if (this.view.tab === "chat") this.unread = 0;
    return this.unread;
  }

  drawLines() {
    this.list.replaceChildren(...this.lines.map(({ who, text }) => h("li", {}, h("b", {}, who), " ", text)));
    this.list.scrollTop = this.list.scrollHeight;
  }

  /** The panel, made once: what is being written stays. */
  panel() {
    this.box ??= this.makePanel();
    return this.box;
  }

  makePanel() {
    const field = h("input", {
      type: "text",
      id: "say",
      maxlength: 200,
      autocomplete: "off",
      "aria-label": "Say something",
      placeholder: "Say something to the table",
    });
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      if (!field.value.trim()) return;
      const said = this.app.link.say({ type: "say", text: field.value });
      said.then(
        () => (field.value = ""),
        (error) => toast(error.message),
      );
    };
    const form = h("form", { class: "buttons", submit }, field, h("button", { id: "send" }, "Send"));
    const hide = () => (this.list.hidden = form.hidden = !this.chat);
    const show = h("input", {
      type: "checkbox",
      checked: this.chat,
      change: (event) => {
        this.chat = event.currentTarget.checked;
        localStorage.setItem("ninetka-chat", this.chat ? "on" : "off");
        hide();
      },
    });
    const text = "Show what is said. Nobody writes it down: it is gone when the server stops.";
    hide();
    this.drawLines();
    return h("div", { class: "chat" }, this.list, form, h("label", { class: "agree" }, show, h("span", {}, text)));
  }
}
