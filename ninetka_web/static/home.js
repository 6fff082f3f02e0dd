// The first page: a new game, the games one has at hand, and records to look at. What there is to choose the server tells.

import { DRAWN, agentName, capital, h, toast } from "./dom.js";
import { loadFace, seatIcon } from "./board.js";

const FORM = "ninetka-form";

const CLOCKS = [["", "none"], ["60+2", "1 minute, 2 seconds more each turn"], ["180+3", "3 minutes, 3 seconds more"], ["600+5", "10 minutes, 5 seconds more"], ["1800+20", "30 minutes, 20 seconds more"]];

/** What was chosen last; of each game its options and seats. */
function remembered(app) {
  const fresh = { game: app.welcome.games[0].name, name: "", clock: "", keep: false, more: false, games: {} };
  try {
    return { ...fresh, ...JSON.parse(localStorage.getItem(FORM)) };
  } catch {
    return fresh;
  }
}

const save = (form) => localStorage.setItem(FORM, JSON.stringify(form));

/** The part of the form that is about one game, whatever an earlier version has left there. */
function partOf(form, game) {
  const { options = {}, seats = [], players = game.seats[0] } = form.games[game.name] ?? {};
  const known = Object.fromEntries(Object.entries(game.defaults).map(([name, value]) => [name, options[name] ?? value]));
  const plays = (spec) => game.agents.every(({ name, seats: counts }) => name !== spec.split(":")[0] || !counts.length || counts.includes(players));
  const all = Array.from({ length: game.seats.at(-1) }, (_, seat) => (seats[seat] && plays(seats[seat]) ? seats[seat] : seat ? game.opponent : "me"));
  return (form.games[game.name] = { options: known, seats: all, players });
}

/** Show the page in `main`. */
export async function showHome(main, app) {
  const form = remembered(app);
  if (!app.game(form.game)) form.game = app.welcome.games[0].name;
  const draw = async () => {
    const game = app.game(form.game);
    save(form);
    await Promise.all([...new Set([form.game, ...app.welcome.tables.map((table) => table.game)])].map(loadFace));
    if (location.pathname.startsWith("/t/")) return;
    document.title = game.title;
    app.about(game);
    const focused = document.activeElement?.id;
    main.replaceChildren(h("div", { class: "home", "data-game": game.name }, choose(form, app, draw), intro(game), newGame(form, game, app, draw), ownTables(app), openRecord(form, app)));
    if (focused) document.getElementById(focused)?.focus();
  };
  await draw();
}

function choose(form, app, draw) {
  return h("div", { class: "games", role: "radiogroup", "aria-label": "Game" }, app.welcome.games.map(({ name, title }) => h("label", { class: "choice" },
    h("input", { type: "radio", name: "game", id: `game-${name}`, checked: form.game === name, change: () => { form.game = name; draw(); } }), h("span", {}, title))));
}

function intro(game) {
  return h("section", { class: "intro" }, h("h1", {}, game.slogan), h("ol", { class: "steps" }, game.steps.map(([what, text]) => h("li", {}, h("b", {}, what), " ", text))));
}

function newGame(form, game, app, draw) {
  const part = partOf(form, game);
  const seats = part.seats.slice(0, part.players), alone = !seats.includes("me");
  const rows = (hidden) => game.form.map((row, index) => row.hidden === hidden && optionRow(part, row, `${game.name}-${index}`, form, draw));
  const players = game.seats.length > 1 && h("fieldset", { class: "row" }, h("legend", {}, "Players"),
    game.seats.map((count) => radio("players", `players-${count}`, String(count), () => part.players === count, () => { part.players = count; draw(); })));
  const card = h("form", { class: "card new", submit: (event) => { event.preventDefault(); start(form, game, app); } },
    h("h2", {}, `New game of ${game.title}`), players,
    h("div", { class: "seats" }, seats.map((_, seat) => seatRow(part, seat, game, draw))), rows(false),
    rows(true).some(Boolean) && h("details", { class: "more", open: form.more === true, toggle: (event) => { form.more = event.target.open; save(form); } }, h("summary", {}, "More"), rows(true)),
    !alone && h("label", { class: "field" }, "Clock", h("select", { id: "clock", change: (event) => { form.clock = event.target.value; save(form); } },
      CLOCKS.map(([value, label]) => h("option", { value, selected: value === form.clock }, label)))),
    !alone && h("label", { class: "field" }, "Your name", h("input", { type: "text", id: "name", maxlength: 24, value: form.name, placeholder: "You", autocomplete: "nickname", input: (event) => { form.name = event.target.value; save(form); } })),
    !alone && h("label", { class: "agree" }, h("input", { type: "checkbox", id: "keep", checked: form.keep, change: (event) => { form.keep = event.target.checked; save(form); } }),
      h("span", {}, "Keep my finished games against agents on this computer, for the statistics of ", h("code", {}, "ninetka table"))),
    h("button", { class: "primary big", id: "start" }, alone ? (seats.includes("open") ? "Open the table" : "Watch them play") : "Start"));
  card.addEventListener("invalid", (event) => event.target.closest("details")?.setAttribute("open", ""), true); // to be seen
  return card;
}

/** A button of several, `fits` tells whether it is the one that is chosen. */
function radio(name, id, label, fits, change) {
  const input = Object.assign(h("input", { type: "radio", name, id, checked: fits(), change }), { fits });
  return h("label", { class: "choice" }, input, h("span", {}, label));
}

/** A row of the form: one of a few values, each of which may set several options, or a number. */
function optionRow(part, row, id, form, draw) {
  if (row.name) {
    // Nothing is drawn anew: a click on a button ends the change, and would miss it.
    const change = ({ target }) => {
      if (!target.checkValidity() || target.value === "") return;
      part.options[row.name] = Number(target.value);
      save(form);
      for (const one of target.form.elements) if (one.fits) one.checked = one.fits();
    };
    return h("label", { class: "field" }, row.title, h("input", { type: "number", id: `option-${row.name}`, min: row.least, max: row.most, step: row.step, value: part.options[row.name], change }));
  }
  const fits = (sets) => Object.entries(sets).every(([name, value]) => part.options[name] === value);
  return h("fieldset", { class: "row" }, h("legend", {}, row.title), row.values.map(([sets, label], place) =>
    radio(id, `${id}-${place}`, label, () => fits(sets), () => { Object.assign(part.options, sets); draw(); })));
}

function seatRow(part, seat, game, draw) {
  const [agent, option = ""] = part.seats[seat].split(":");
  const value = Number(option.split("=")[1] ?? 0);
  const set = (text) => { part.seats[seat] = text; draw(); };
  const named = (name) => game.agents.find((one) => one.name === name);
  const spec = (name, strength) => (strength ? `${name}:${named(name).option}=${strength}` : name);
  const colour = game.colours[seat];
  const who = h("select", { id: `seat-${seat}`, "aria-label": `Who plays ${colour}`, change: (event) => set(spec(event.target.value, named(event.target.value)?.usual)) },
    h("option", { value: "me", selected: agent === "me" }, "You"),
    h("option", { value: "open", selected: agent === "open" }, "Someone else, by link"),
    game.agents.filter(({ seats }) => !seats.length || seats.includes(part.players)).map(({ name, title }) => h("option", { value: name, selected: agent === name }, title)));
  const strengths = named(agent)?.strengths ?? [];
  const strength = strengths.length > 1 && h("select", { id: `strength-${seat}`, "aria-label": `Strength of ${colour}`, change: (event) => set(spec(agent, Number(event.target.value))) },
    strengths.map(([amount, label]) => h("option", { value: amount, selected: amount === (value || named(agent).usual) }, label)));
  return h("div", { class: "seat-row" }, seatIcon(game.name, seat), h("span", { class: "colour" }, capital(colour)), who, strength);
}

function start(form, game, app) {
  const { options, seats, players } = partOf(form, game);
  const chosen = seats.slice(0, players), clock = form.clock && chosen.some((seat) => seat === "me" || seat === "open") ? form.clock.split("+").map(Number) : null;
  app.ask({ type: "create", game: game.name, seats: chosen, options, clock, name: form.name.trim(), keep: form.keep });
}

function ownTables(app) {
  const { tables } = app.welcome;
  if (!tables.length) return null;
  const discard = async (table) => {
    await app.ask({ type: "discard", table });
    app.ask({ type: "hello", token: app.welcome.token });
  };
  const words = { person: "You", open: "open seat" };
  const line = ({ table, game: gameName, who, ply, over, winner }) => {
    const game = app.game(gameName);
    const outcome = winner === null ? "given up" : winner === DRAWN ? "drawn" : `${game.colours[winner]} won`;
    const name = (one) => words[one] ?? (game.agents.some((agent) => agent.name === one.split(":")[0]) ? agentName(game, one) : one);
    return h("li", { "data-game": gameName },
      h("a", { href: `/t/${table}` }, h("b", {}, game.title), who.map((each, seat) => h("span", { class: "who" }, seatIcon(gameName, seat), name(each)))),
      h("span", { class: "faint" }, over ? outcome : `ply ${ply}`),
      h("button", { type: "button", class: "quiet", "aria-label": "Remove this table", title: "Remove", click: () => discard(table) }, "×"));
  };
  return h("section", { class: "card" }, h("h2", {}, "Your tables"), h("ul", { class: "tables" }, tables.map(line)));
}

function openRecord(form, app) {
  const area = h("textarea", { id: "record", rows: 4, spellcheck: "false", "aria-label": "Record or position", placeholder: "Paste a game record, SGF or a position here, or choose a file" });
  const file = h("input", { type: "file", id: "file", "aria-label": "File of a record", accept: ".txt,.sgf,text/plain", change: async () => {
    if (file.files[0].size > 2_000_000) return toast("this file is too large for game records");
    area.value = await file.files[0].text();
    return openText(area.value, form, app);
  } });
  return h("section", { class: "card" }, h("h2", {}, "Look at a game"), area,
    h("div", { class: "buttons" }, h("button", { type: "button", id: "open-record", click: () => openText(area.value, form, app) }, "Open"), file));
}

/** How long a game may be as text, so that it is one message to the server. */
const MOST_BYTES = 60000;
/** Where a record begins. */
const HEAD = /^(?=9tka record, format|game record, format)/m;
/** How a position begins, by game. */
const POSITIONS = { ninetka: /^\s*9tka\b/, go: /^\s*go\d+ /, kropki: /^\s*Kropki\b/ };

/** Open text as a record, or as a position to play on from; of several records a number is asked for. */
function openText(text, form, app) {
  if (!text.trim()) return toast("paste a record or a position first");
  if (text.trimStart().startsWith("(")) return upload(text, app);
  if (!HEAD.test(text)) return openPosition(text, form, app);
  const games = text.split(HEAD).filter((game) => HEAD.test(game));
  const number = games.length === 1 ? 1 : Number(prompt(`There are ${games.length} games. Which one?`, "1"));
  if (!number) return undefined;
  if (!games[number - 1]) return toast(`there is no game ${number} among ${games.length}`);
  return upload(games[number - 1], app);
}

function upload(text, app) {
  const bytes = new TextEncoder().encode(JSON.stringify(text)).length;
  return bytes > MOST_BYTES ? toast(`This game is too long to be opened here: it has ${bytes.toLocaleString("en")} bytes, ${MOST_BYTES.toLocaleString("en")} are allowed`) : app.ask({ type: "upload", text });
}

function openPosition(text, form, app) {
  const name = Object.keys(POSITIONS).find((one) => POSITIONS[one].test(text)) ?? form.game;
  const players = Number(text.match(/players=([234])/)?.[1] ?? 2);
  const { seats } = partOf(form, app.game(name));
  return app.ask({ type: "create", game: name, seats: seats.slice(0, players), name: form.name.trim(), position: text });
}
