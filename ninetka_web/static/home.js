// The first page: a new game, the games one has at hand, and records to look at.

import { h, toast } from "./dom.js";
import { COLOURS, DRAWN, agentName, capital } from "./rules.js";
import { stoneIcon } from "./board.js";

const AGENTS = {
  random: { name: "Random", options: [["", "any legal move"]] },
  maxn: {
    name: "MaxN (the classic)",
    options: [["", "as in the paper"], ["1", "1 ply: easy"], ["3", "3 plies"], ["5", "5 plies"], ["7", "7 plies"]],
  },
  mcts: {
    name: "Tree search",
    options: [["100", "100 playouts: easy"], ["1000", "1,000 playouts"], ["5000", "5,000 playouts"], ["20000", "20,000 playouts: hard"], ["50000", "50,000 playouts: hardest"]],
  },
  net: {
    name: "Neural network",
    options: [["", "at first sight"], ["64", "with 64 simulations"], ["200", "with 200 simulations: hard"], ["400", "with 400 simulations: hardest"]],
  },
};
const FORM = "ninetka-form";

/** What was chosen last, or a first game against MaxN. */
function remembered() {
  const fresh = { players: 2, seats: ["me", "maxn", "maxn", "maxn"], neutrals: "players", order: "restart", name: "", keep: false };
  try {
    return { ...fresh, ...JSON.parse(localStorage.getItem(FORM)) };
  } catch {
    return fresh;
  }
}

/** Show the page in `main`. */
export function showHome(main, app) {
  document.title = "9tka";
  const form = remembered();
  const draw = () => {
    localStorage.setItem(FORM, JSON.stringify(form));
    main.replaceChildren(h("div", { class: "home" }, intro(), newGame(form, app, draw), ownTables(app), openRecord(app)));
  };
  draw();
}

function intro() {
  const step = (number, title, text) => h("li", {}, h("b", {}, title), " ", text);
  return h("section", { class: "intro" },
    h("h1", {}, "Nine sections, one slide at a time"),
    h("ol", { class: "steps" },
      step(1, "Set the obstacles.", "One neutral stone in every section."),
      step(2, "Line up.", "Your stones go on the edge of the board."),
      step(3, "Slide in.", "A stone runs until something stops it. Whoever has most stones in a section owns it; most sections win.")));
}

function newGame(form, app, draw) {
  const change = (name, value) => {
    form[name] = value;
    draw();
    document.getElementById(`${name}-${value}`)?.focus();
  };
  const choice = (name, value, label) => h("label", { class: "choice" },
    h("input", { type: "radio", name, id: `${name}-${value}`, checked: form[name] === value, change: () => change(name, value) }), h("span", {}, label));
  const seats = form.seats.slice(0, form.players);
  const alone = !seats.includes("me");
  return h("form", { class: "card new", submit: (event) => { event.preventDefault(); start(form, app); } },
    h("h2", {}, "New game"),
    h("fieldset", { class: "row" }, h("legend", {}, "Players"), choice("players", 2, "2"), choice("players", 3, "3"), choice("players", 4, "4")),
    h("div", { class: "seats" }, seats.map((_, seat) => seatRow(form, seat, app, draw))),
    h("fieldset", { class: "row" }, h("legend", {}, "Neutral stones"), choice("neutrals", "players", "placed in turn"), choice("neutrals", "random", "at random")),
    h("details", { class: "more", open: form.more === true, toggle: (event) => { form.more = event.target.open; localStorage.setItem(FORM, JSON.stringify(form)); } }, h("summary", {}, "More"),
      h("fieldset", { class: "row" }, h("legend", {}, "Each phase is opened by"), choice("order", "restart", "the first seat"), choice("order", "continue", "whoever is next"))),
    !alone && h("label", { class: "field" }, "Your name", h("input", { type: "text", id: "name", maxlength: 24, value: form.name, placeholder: "You", autocomplete: "nickname", input: (event) => { form.name = event.target.value; localStorage.setItem(FORM, JSON.stringify(form)); } })),
    !alone && h("label", { class: "agree" }, h("input", { type: "checkbox", id: "keep", checked: form.keep, change: (event) => { form.keep = event.target.checked; localStorage.setItem(FORM, JSON.stringify(form)); } }),
      h("span", {}, "Keep my finished games against agents on this computer, for the statistics of ", h("code", {}, "ninetka table"))),
    h("button", { class: "primary big", id: "start" }, alone ? (seats.includes("open") ? "Open the table" : "Watch them play") : "Start"));
}

function seatRow(form, seat, app, draw) {
  const [agent, option = ""] = form.seats[seat].split(":");
  const value = option.split("=")[1] ?? "";
  const set = (text) => { form.seats[seat] = text; draw(); };
  const spec = (name, strength) => (strength ? `${name}:${app.welcome.strengths[name][0]}=${strength}` : name);
  const who = h("select", { id: `seat-${seat}`, "aria-label": `Who plays ${COLOURS[seat]}`, change: (event) => {
    const name = event.target.value;
    const middle = AGENTS[name]?.options[name === "mcts" ? 1 : 0][0] ?? "";
    set(spec(name, middle));
    document.getElementById(`seat-${seat}`).focus();
  } },
    h("option", { value: "me", selected: agent === "me" }, "You"),
    h("option", { value: "open", selected: agent === "open" }, "Someone else, by link"),
    Object.entries(AGENTS).map(([name, { name: label }]) => h("option", { value: name, selected: agent === name, disabled: !app.welcome.agents.includes(name) }, label)));
  const options = AGENTS[agent]?.options ?? [];
  const strength = options.length > 1 && h("select", { id: `strength-${seat}`, "aria-label": `Strength of ${COLOURS[seat]}`, change: (event) => set(spec(agent, event.target.value)) },
    options.map(([amount, label]) => h("option", { value: amount, selected: amount === value }, label)));
  return h("div", { class: "seat-row" }, stoneIcon(seat), h("span", { class: "colour" }, capital(COLOURS[seat])), who, strength);
}

function start(form, app) {
  app.ask({
    type: "create", seats: form.seats.slice(0, form.players), neutral_placement: form.neutrals, turn_order: form.order,
    name: form.name.trim(), keep: form.keep,
  });
}

function ownTables(app) {
  const { tables } = app.welcome;
  if (!tables.length) return null;
  const discard = async (table) => {
    await app.ask({ type: "discard", table });
    app.ask({ type: "hello", token: app.welcome.token });
  };
  const outcome = (winner) => (winner === null ? "given up" : winner === DRAWN ? "drawn" : `${COLOURS[winner]} won`);
  const words = { person: "You", open: "open seat" };
  const name = (who) => words[who] ?? (who.includes(":") || ["random", "maxn", "mcts", "net"].includes(who) ? agentName(who) : who);
  return h("section", { class: "card" }, h("h2", {}, "Your tables"),
    h("ul", { class: "tables" }, tables.map(({ table, who, ply, over, winner }) => h("li", {},
      h("a", { href: `/t/${table}` }, who.map((each, seat) => h("span", { class: "who" }, stoneIcon(seat), name(each)))),
      h("span", { class: "faint" }, over ? outcome(winner) : `ply ${ply}`),
      h("button", { type: "button", class: "quiet", "aria-label": "Remove this table", title: "Remove", click: () => discard(table) }, "×")))));
}

function openRecord(app) {
  const area = h("textarea", { id: "record", rows: 4, spellcheck: "false", placeholder: "Paste a game record or a position here, or choose a file" });
  const file = h("input", { type: "file", id: "file", accept: ".txt,text/plain", change: async () => {
    if (file.files[0].size > 2_000_000) return toast("this file is too large for game records");
    area.value = await file.files[0].text();
    return openText(area.value, app);
  } });
  return h("section", { class: "card" }, h("h2", {}, "Look at a game"), area,
    h("div", { class: "buttons" }, h("button", { type: "button", id: "open-record", click: () => openText(area.value, app) }, "Open"), file));
}

/** Where a record begins. */
const HEAD = /^(?=9tka record, format|game record, format)/m;

/** Open text as a record, or as a position to play on from; of several records a number is asked for. */
function openText(text, app) {
  if (!text.trim()) return toast("paste a record or a position first");
  if (!HEAD.test(text)) return openPosition(text, app);
  const games = text.split(HEAD).filter((game) => HEAD.test(game));
  const number = games.length === 1 ? 1 : Number(prompt(`There are ${games.length} games. Which one?`, "1"));
  if (!number) return undefined;
  if (!games[number - 1]) return toast(`there is no game ${number} among ${games.length}`);
  return app.ask({ type: "upload", text: games[number - 1] });
}

function openPosition(text, app) {
  const players = Number(text.match(/players=([234])/)?.[1] ?? 2);
  const form = remembered();
  const seats = form.seats.slice(0, players);
  return app.ask({ type: "create", seats, name: form.name.trim(), position: text });
}
