// Which page is shown, and who hears what the server says.

import { h, toast } from "./dom.js";
import { Link } from "./link.js";
import { showHome } from "./home.js";
import { TableView } from "./table.js";
import { loadFace } from "./board.js";

const main = document.getElementById("main");
let view = null;
let welcome = null;
const states = []; // that came while a drawing file was loaded
let opening = false; // whether a new table has been asked for, which is to be shown when it comes

/** Everything that pages need from here. */
const app = {
  link: null,
  /** Send a message and show why it was refused, if so. */
  ask(message) {
    if (["create", "upload"].includes(message.type)) opening = true;
    return app.link.say(message).catch((error) => {
      opening = false;
      toast(error.message);
    });
  },
  get welcome() {
    return welcome;
  },
  /** What the server told of a game. */
  game: (name) => welcome.games.find((one) => one.name === name),
  /** Let the page be about a game: its name, and how it is played. */
  about(game) {
    document.getElementById("rules-title").textContent = `How to play ${game.title}`;
    document.getElementById("rules-text").replaceChildren(...game.rules.map(([what, text]) => h("p", {}, h("b", {}, what), " ", text)));
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
  } else if (isTablePath()) showMissing("The address of a table has 16 letters, digits, - or _ at its end: a part of this one is missing");
  else {
    view?.close();
    view = null;
    app.link.say({ type: "leave" }).catch(() => {});
    app.link.say({ type: "hello", token: welcome.token }).catch(() => {}); // the answer tells of the tables as they are now
  }
}

/** Say that there is no table at the address. */
function showMissing(why) {
  view?.close();
  view = null;
  main.replaceChildren(h("section", { class: "card narrow" }, h("h1", {}, "No such table"), h("p", {}, `${why}.`), h("a", { class: "button primary", href: "/" }, "New game")));
}

function hear(message) {
  document.getElementById("lost").hidden = message.type !== "lost";
  if (message.type === "welcome") {
    welcome = message;
    if (isTablePath()) route();
    else showHome(main, app);
  } else if (message.type === "state") showState(message);
  else if (message.type === "notice") toast(message.text);
  else if (message.type === "compiling" && !view) {
    if (welcome) toast(`Compiling ${message.what}, once: the board comes in some seconds …`);
    else main.replaceChildren(h("p", { class: "loading" }, `Compiling ${message.what}, once: this takes some seconds …`));
  } else view?.hear(message);
}

/** Show a table as it is now. */
async function showState(message) {
  if (message.table !== tableInPath()) {
    if (!opening) return; // of a table that was left just now
    history.pushState(null, "", `/t/${message.table}`);
  }
  opening = false;
  states.push(message);
  await loadFace(message.game);
  while (states.length) { // in the order in which they came: each holds only what is new
    const state = states.shift();
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
  const anchor = event.target.closest("a");
  if (!anchor || anchor.download || anchor.origin !== location.origin || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  app.go(anchor.pathname);
});
addEventListener("popstate", route);

const root = document.documentElement;
const paint = (theme) => (theme ? root.setAttribute("data-theme", theme) : root.removeAttribute("data-theme"));
paint(localStorage.getItem("ninetka-theme"));
document.getElementById("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  localStorage.setItem("ninetka-theme", dark ? "light" : "dark");
  paint(dark ? "light" : "dark");
});
document.getElementById("help").addEventListener("click", () => document.getElementById("rules").showModal());

app.link = new Link(hear);
