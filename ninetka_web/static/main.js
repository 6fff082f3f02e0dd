// Which page is shown, and who hears what the server says.

import { byId, h, known, toast } from "./dom.js";
import { Link } from "./link.js";
import { showHome } from "./home.js";
import { TableView } from "./table.js";
import { loadFace } from "./board.js";

/** @import { App, Message, State, Welcome } from "../../tools/page/types" */

const main = byId("main");
/** @type {TableView | null} */
let view = null;
/** @type {Welcome | null} */
let welcome = null;
/** @type {State[]} */
const states = []; // that came while a drawing file was loaded
let opening = false; // whether a new table has been asked for, which is to be shown when it comes

/** Everything that pages need from here. @type {App} */
const app = {
  link: new Link(hear),
  /** Send a message and show why it was refused, if so. */
  ask(message) {
    if (["create", "upload"].includes(message.type)) opening = true;
    return app.link.say(message).catch((error) => {
      opening = false;
      toast(error.message);
    });
  },
  get welcome() {
    return known(welcome);
  },
  /** What the server told of a game. */
  game: (name) => known(app.welcome.games.find((one) => one.name === name)),
  /** Let the page be about a game: its name, and how it is played. */
  about(game) {
    byId("rules-title").textContent = `How to play ${game.title}`;
    byId("rules-text").replaceChildren(...game.rules.map(([what, text]) => h("p", {}, h("b", {}, what), " ", text)));
  },
  go(path) {
    history.pushState(null, "", path);
    route();
  },
};

const isTablePath = () => location.pathname.startsWith("/t/");
const tableInPath = () => location.pathname.match(/^\/t\/([A-Za-z0-9_-]{16})$/)?.[1] ?? "";

/** Show the page that the address names. */
function route() {
  if (!welcome) return;
  const table = tableInPath();
  if (table) {
    if (view?.id === table) view.reset();
    else {
      view?.close();
      view = new TableView(main, app, table);
    }
    const key = location.hash.match(/^#seat=([\w-]{43})$/)?.[1];
    if (key) history.replaceState(null, "", location.pathname);
    const join = app.link.say({ type: "join", table });
    if (key) app.ask({ type: "reclaim", key });
    join.catch((error) => showMissing(error.message));
  } else if (isTablePath()) {
    showMissing("The address of a table has 16 letters, digits, - or _ at its end: a part of this one is missing");
  } else {
    view?.close();
    view = null;
    app.link.say({ type: "leave" }).catch(() => {});
    // The answer lists the tables as they are now.
    app.link.say({ type: "hello", token: welcome.token }).catch(() => {});
  }
}

/** Say that there is no table at the address. @param {string} why */
function showMissing(why) {
  view?.close();
  view = null;
  const back = h("a", { class: "button primary", href: "/" }, "New game");
  main.replaceChildren(
    h("section", { class: "card narrow" }, h("h1", {}, "No such table"), h("p", {}, `${why}.`), back),
  );
}

/** @param {Message} message */
function hear(message) {
  byId("lost").hidden = message.type !== "lost";
  if (message.type === "welcome") {
    welcome = message;
    if (isTablePath()) route();
    else showHome(main, app);
  } else if (message.type === "state") showState(message);
  else if (message.type === "notice") toast(message.text);
  else if (message.type === "compiling" && !view) {
    if (welcome) toast(`Compiling ${message.what}, once: the board comes in some seconds …`);
    else {
      const text = `Compiling ${message.what}, once: this takes some seconds …`;
      main.replaceChildren(h("p", { class: "loading" }, text));
    }
  } else view?.hear(message);
}

/** Show a table as it is now. @param {State} message */
async function showState(message) {
  if (message.table !== tableInPath()) {
    if (!opening) return; // of a table that was left just now
    history.pushState(null, "", `/t/${message.table}`);
  }
  opening = false;
  states.push(message);
  await loadFace(message.game);
  // In the order in which they came: each holds only what is new.
  for (let state = states.shift(); state; state = states.shift()) {
    if (state.table !== tableInPath()) continue;
    if (view?.id !== state.table) {
      view?.close();
      view = new TableView(main, app, state.table);
    }
    view.update(state);
  }
}

/** Follow links inside the page without loading it again. */
document.addEventListener("click", (event) => {
  const anchor = event.target instanceof Element ? event.target.closest("a") : null;
  if (!anchor || anchor.download || anchor.origin !== location.origin) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  app.go(anchor.pathname);
});
addEventListener("popstate", route);

const root = document.documentElement;
/** @param {string | null} theme */
const paint = (theme) => (theme ? root.setAttribute("data-theme", theme) : root.removeAttribute("data-theme"));
paint(localStorage.getItem("ninetka-theme"));
byId("theme").addEventListener("click", () => {
  const { theme } = root.dataset;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  localStorage.setItem("ninetka-theme", dark ? "light" : "dark");
  paint(dark ? "light" : "dark");
});
const rules = /** @type {HTMLDialogElement} */ (byId("rules"));
byId("help").addEventListener("click", () => rules.showModal());
