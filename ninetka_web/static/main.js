// Entry point of the page: shows the start page or a table and passes on the messages of the server.

import { assertDefined, byId, h, toast } from "./dom.js";
import { Connection } from "./connection.js";
import { showHome } from "./home.js";
import { TableView } from "./table.js";
import { loadRenderer } from "./board.js";

/** @import { App, ServerMessage, State, Welcome } from "../../tools/page/types" */

const main = byId("main");
/** @type {TableView | null} */
let view = null;
/** @type {Welcome | null} */
let welcome = null;
/** @type {State[]} */
const pendingStates = []; // received while a renderer is loaded
let awaitsNewTable = false; // whether a table was requested that is shown as soon as it arrives

/** What the pages need from this module. @type {App} */
const app = {
  connection: new Connection(receive),
  /** Send a message; if it is refused, show the reason. */
  send(message) {
    if (["create", "upload"].includes(message.type)) awaitsNewTable = true;
    return app.connection.send(message).catch((error) => {
      awaitsNewTable = false;
      toast(error.message);
    });
  },
  get welcome() {
    return assertDefined(welcome);
  },
  /** Return the server's description of a game. */
  game: (name) => assertDefined(app.welcome.games.find((each) => each.name === name)),
  /** Show the name and the rules of a game in the rules dialog. */
  setGame(game) {
    byId("rules-title").textContent = `How to play ${game.title}`;
    byId("rules-text").replaceChildren(
      ...game.rules.map(([heading, text]) => h("p", {}, h("b", {}, heading), " ", text)),
    );
  },
  navigate(path) {
    history.pushState(null, "", path);
    route();
  },
};

const isTablePath = () => location.pathname.startsWith("/t/");
const tableInPath = () => location.pathname.match(/^\/t\/([A-Za-z0-9_-]{16})$/)?.[1] ?? "";

/** Show the page of the current address. */
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
    const join = app.connection.send({ type: "join", table });
    if (key) app.send({ type: "reclaim", key });
    join.catch((error) => showMissing(error.message));
  } else if (isTablePath()) {
    showMissing("The address of a table ends with 16 letters, digits, - or _; a part of this address is missing");
  } else {
    view?.close();
    view = null;
    app.connection.send({ type: "leave" }).catch(() => {});
    // The answer contains the current list of tables.
    app.connection.send({ type: "hello", token: welcome.token }).catch(() => {});
  }
}

/** Show that there is no table at the address. @param {string} reason */
function showMissing(reason) {
  view?.close();
  view = null;
  const back = h("a", { class: "button primary", href: "/" }, "New game");
  main.replaceChildren(
    h("section", { class: "card narrow" }, h("h1", {}, "No such table"), h("p", {}, `${reason}.`), back),
  );
}

/** @param {ServerMessage} message */
function receive(message) {
  byId("lost").hidden = message.type !== "lost";
  if (message.type === "welcome") {
    welcome = message;
    if (isTablePath()) route();
    else showHome(main, app);
  } else if (message.type === "state") showState(message);
  else if (message.type === "notice") toast(message.text);
  else if (message.type === "compiling" && !view) {
    if (welcome) toast(`Compiling ${message.what}; this happens only once. The board appears in a few seconds …`);
    else {
      const text = `Compiling ${message.what}; this happens only once and takes a few seconds …`;
      main.replaceChildren(h("p", { class: "loading" }, text));
    }
  } else view?.receive(message);
}

/** Show a new state of a table. @param {State} message */
async function showState(message) {
  if (message.table !== tableInPath()) {
    if (!awaitsNewTable) return; // the user has just left this table
    history.pushState(null, "", `/t/${message.table}`);
  }
  awaitsNewTable = false;
  pendingStates.push(message);
  await loadRenderer(message.game);
  // Process the states in order, because each contains only the new moves.
  for (let state = pendingStates.shift(); state; state = pendingStates.shift()) {
    if (state.table !== tableInPath()) continue;
    if (view?.id !== state.table) {
      view?.close();
      view = new TableView(main, app, state.table);
    }
    view.update(state);
  }
}

/** Follow links inside the page without a reload. */
document.addEventListener("click", (event) => {
  const anchor = event.target instanceof Element ? event.target.closest("a") : null;
  if (!anchor || anchor.download || anchor.origin !== location.origin) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  app.navigate(anchor.pathname);
});
addEventListener("popstate", route);

const root = document.documentElement;
/** @param {string | null} theme */
const setTheme = (theme) => (theme ? root.setAttribute("data-theme", theme) : root.removeAttribute("data-theme"));
setTheme(localStorage.getItem("ninetka-theme"));
byId("theme").addEventListener("click", () => {
  const { theme } = root.dataset;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  localStorage.setItem("ninetka-theme", dark ? "light" : "dark");
  setTheme(dark ? "light" : "dark");
});
const rules = /** @type {HTMLDialogElement} */ (byId("rules"));
byId("help").addEventListener("click", () => rules.showModal());
