// The users at a table: absence, clocks, questions between users, chat, and a sound when it is the user's turn.

import { announce, h, toast } from "./dom.js";

/**
 * @import { App, Chat, ChatLine, ClientMessage } from "../../tools/page/types"
 * @import { TableView } from "./table.js"
 */

/** @param {string} name */
const isOn = (name) => localStorage.getItem(`ninetka-${name}`) !== "off";
/** @param {number} seconds */
const formatTime = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
/** @type {AudioContext | null} */
let audio = null;

/** Play two short notes. Browsers that allow sound only after a click stay silent until then. */
function playChime() {
  audio ??= new AudioContext();
  const { currentTime, destination } = audio;
  for (const [number, pitch] of [660, 880].entries()) {
    const note = audio.createOscillator();
    const volume = audio.createGain();
    const start = currentTime + 0.09 * number;
    note.frequency.value = pitch;
    volume.gain.setValueAtTime(0.06, start);
    volume.gain.exponentialRampToValueAtTime(0.001, start + 0.15);
    note.connect(volume).connect(destination);
    note.start(start);
    note.stop(start + 0.15);
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
    this.sound = isOn("sound");
    this.chat = isOn("chat");
    /** @type {ChatLine[]} */
    this.lines = [];
    this.list = h("ul", { class: "lines" });
    /** @type {HTMLElement | null} */
    this.panelElement = null;
    this.unread = 0;
    this.stateTime = 0;
    this.numMissing = 0;
    this.timer = setInterval(() => this.tick(), 200);
  }

  close() {
    clearInterval(this.timer);
  }

  /**
   * Process a new state. The times in it are relative to now.
   * @param {boolean} isMine
   * @param {boolean} wasMine
   */
  update(isMine, wasMine) {
    this.stateTime = performance.now();
    this.numMissing = this.missingSeats.length;
    if (isMine && !wasMine && this.sound) playChime();
  }

  /** Seconds since the latest state arrived. */
  get elapsed() {
    return (performance.now() - this.stateTime) / 1000;
  }

  /** Return the text of a seat's clock, empty without clocks. @param {number} seat */
  clock(seat) {
    const { clock } = this.view.state;
    if (!clock) return "";
    const remaining = clock.remaining[seat] - (clock.running === seat ? this.elapsed : 0);
    return remaining < 10 && remaining > 0 ? `0:0${remaining.toFixed(1)}` : formatTime(Math.max(0, remaining));
  }

  /** @param {number} seat */
  clockOf(seat) {
    const { clock, seats } = this.view.state;
    if (!clock || seats[seat].agent) return null;
    const classes = `clock${clock.running === seat ? " runs" : ""}`;
    return h("span", { class: classes, "data-clock": seat, role: "timer" }, this.clock(seat));
  }

  /** Return the seconds that a seat's user has to come back; null if they have not left. @param {number} seat */
  secondsToReturn(seat) {
    const { away, over } = this.view.state;
    if (!(seat in away)) return null;
    return over ? 0 : Math.max(0, away[seat] - this.elapsed);
  }

  /** Return a text about a seat whose user has left; empty for other seats. @param {number} seat */
  absenceText(seat) {
    const seconds = this.secondsToReturn(seat);
    if (seconds === null) return "";
    return seconds > 0 ? `has left, ${formatTime(Math.ceil(seconds))} to come back` : "has left";
  }

  /** The seats of users who have been away for too long while a game runs. */
  get missingSeats() {
    const { over, settling, proposal, you, seats } = this.view.state;
    if (over || !you.length || (settling && !proposal)) return [];
    return seats.map((_, seat) => seat).filter((seat) => this.secondsToReturn(seat) === 0);
  }

  tick() {
    if (!this.view.layout) return;
    /** @type {NodeListOf<HTMLElement>} */
    const clocks = document.querySelectorAll("[data-clock]");
    for (const clock of clocks) {
      const text = this.clock(Number(clock.dataset.clock));
      if (clock.textContent !== text) clock.textContent = text;
      clock.classList.toggle("low", text.includes("."));
    }
    /** @type {NodeListOf<HTMLElement>} */
    const notes = document.querySelectorAll("[data-left]");
    for (const note of notes) note.textContent = this.absenceText(Number(note.dataset.left));
    if (this.missingSeats.length !== this.numMissing) {
      this.numMissing = this.missingSeats.length;
      this.view.draw();
    }
  }

  /** Return the open questions to this user and to others. */
  questions() {
    const { missingSeats } = this;
    const { state } = this.view;
    /** @type {(message: ClientMessage, label: string, classes?: string) => HTMLElement} */
    const sendButton = (message, label, classes = "") =>
      h("button", { type: "button", class: classes, click: () => this.app.send(message) }, label);
    /** @type {(accept: boolean, label: string) => HTMLElement} */
    const answer = (accept, label) =>
      sendButton({ type: "answer", accept, question: state.question }, label, accept ? "primary" : "");
    const request = state.request === "undo" ? `take the game back to ply ${state.undo}` : "play again";
    const question = { class: "question" };
    const questions = [];
    if (state.asked) {
      questions.push(h("p", question, `Do you agree to ${request}? `, answer(true, "Agree"), answer(false, "Refuse")));
    } else if (state.request) questions.push(h("p", question, `Waiting for the others to agree to ${request}.`));
    if (missingSeats.length) {
      const numOthers = state.seats.filter(({ kind }, seat) => kind === "person" && !state.you.includes(seat)).length;
      const names = missingSeats.map((seat) => this.view.nameOf(seat)).join(", ");
      const winLabel = state.seats.length > 2 ? "Let an agent play on" : "Take the win";
      const win = sendButton(
        { type: "claim", win: true },
        state.settling ? "Accept the proposed score" : winLabel,
        "primary",
      );
      const stop = numOthers === missingSeats.length && sendButton({ type: "claim", win: false }, "Call the game off");
      questions.push(h("p", question, `${names} did not come back. `, win, stop));
    }
    return questions;
  }

  toggle() {
    this.sound = !this.sound;
    localStorage.setItem("ninetka-sound", this.sound ? "on" : "off");
    if (this.sound) playChime();
    this.view.draw();
  }

  // Chat

  /** @param {Chat} message */
  receive({ lines, new: isNew = false }) {
    this.lines = [...(isNew ? this.lines : []), ...lines].slice(-50);
    if (isNew && this.chat) {
      const [{ name, text }] = lines;
      announce(`${name}: ${text}`);
      if (this.view.tab !== "chat") this.unread++;
    }
    if (this.view.layout) this.view.drawTabs();
    this.drawLines();
  }

  /** The number of unread lines; opening the chat resets it. */
  get unreadCount() {
    if (this.view.tab === "chat") this.unread = 0;
    return this.unread;
  }

  drawLines() {
    this.list.replaceChildren(...this.lines.map(({ name, text }) => h("li", {}, h("b", {}, name), " ", text)));
    this.list.scrollTop = this.list.scrollHeight;
  }

  /** Return the panel; it is created once, so that a text being written stays. */
  panel() {
    this.panelElement ??= this.makePanel();
    return this.panelElement;
  }

  makePanel() {
    const field = h("input", {
      type: "text",
      id: "say",
      maxlength: 200,
      autocomplete: "off",
      "aria-label": "Chat message",
      placeholder: "Write to the users at this table",
    });
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      if (!field.value.trim()) return;
      const answer = this.app.connection.send({ type: "chat", text: field.value });
      answer.then(
        () => (field.value = ""),
        (error) => toast(error.message),
      );
    };
    const form = h("form", { class: "buttons", submit }, field, h("button", { id: "send" }, "Send"));
    const applyVisibility = () => (this.list.hidden = form.hidden = !this.chat);
    const show = h("input", {
      type: "checkbox",
      checked: this.chat,
      change: (event) => {
        this.chat = event.currentTarget.checked;
        localStorage.setItem("ninetka-chat", this.chat ? "on" : "off");
        applyVisibility();
      },
    });
    const text = "Show the chat. It is not stored: it is lost when the server stops.";
    applyVisibility();
    this.drawLines();
    return h("div", { class: "chat" }, this.list, form, h("label", { class: "agree" }, show, h("span", {}, text)));
  }
}
