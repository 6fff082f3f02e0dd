// The start page: the form for a new game, the user's tables, and opening game records. The server sends the choices.

import { DRAWN, agentName, capitalize, h, toast } from "./dom.js";
import { loadRenderer, seatIcon } from "./board.js";

/**
 * @import {
 *   App, ChoicesRow, Form, Game, GameSettings, NumberRow, Options, TableSummary
 * } from "../../tools/page/types"
 */

const FORM_KEY = "ninetka-form";

const CLOCKS = [
  ["", "none"],
  ["60+2", "1 minute, 2 seconds more each turn"],
  ["180+3", "3 minutes, 3 seconds more"],
  ["600+5", "10 minutes, 5 seconds more"],
  ["1800+20", "30 minutes, 20 seconds more"],
];

/** Return the form as it was filled in last, with the options and seats of each game. @type {(app: App) => Form} */
function loadForm(app) {
  /** @type {Form} */
  const defaults = { game: app.welcome.games[0].name, name: "", clock: "", keep: false, more: false, games: {} };
  try {
    return { ...defaults, ...JSON.parse(localStorage.getItem(FORM_KEY) ?? "{}") };
  } catch {
    return defaults;
  }
}

/** @param {Form} form */
const saveForm = (form) => localStorage.setItem(FORM_KEY, JSON.stringify(form));

/**
 * Return the form's settings for one game; defaults replace missing options and agents that cannot play.
 * @param {Form} form
 * @param {Game} game
 */
function settingsFor(form, game) {
  const { options = {}, seats = [], players = game.seats[0] } = form.games[game.name] ?? {};
  const allOptions = Object.fromEntries(
    Object.entries(game.defaults).map(([name, value]) => [name, options[name] ?? value]),
  );
  /** @param {string | undefined} spec */
  const isOffered = (spec) =>
    spec && game.agents.every((agent) => agent.name !== spec.split(":")[0] || supportsPlayers(agent, players));
  const defaults = Array.from({ length: Math.max(...game.seats) }, (_, seat) => (seat ? game.opponent : "me"));
  const specs = defaults.map((spec, seat) => (isOffered(seats[seat]) ? seats[seat] : spec));
  /** @type {GameSettings} */
  const settings = { options: allOptions, seats: specs, players };
  form.games[game.name] = settings;
  return settings;
}

/**
 * Return whether an agent can play with this number of players.
 * @param {{ seats: number[] }} agent
 * @param {number} players
 */
const supportsPlayers = ({ seats }, players) => !seats.length || seats.includes(players);

/**
 * Show the page in `main`.
 * @param {HTMLElement} main
 * @param {App} app
 */
export async function showHome(main, app) {
  const form = loadForm(app);
  const { games } = app.welcome;
  if (!games.some((game) => game.name === form.game)) form.game = games[0].name;
  const draw = async () => {
    const game = app.game(form.game);
    saveForm(form);
    await Promise.all([...new Set([form.game, ...app.welcome.tables.map((table) => table.game)])].map(loadRenderer));
    if (location.pathname.startsWith("/t/")) return;
    document.title = game.title;
    app.setGame(game);
    const focused = document.activeElement?.id;
    const parts = [gameChoice(form, app, draw), intro(game), newGameForm(form, game, app, draw), tableList(app)];
    main.replaceChildren(h("div", { class: "home", "data-game": game.name }, ...parts, recordCard(form, app)));
    if (focused) document.getElementById(focused)?.focus();
  };
  await draw();
}

/**
 * @param {Form} form
 * @param {App} app
 * @param {() => void} draw
 */
function gameChoice(form, app, draw) {
  const choices = app.welcome.games.map(({ name, title }) => {
    const change = () => {
      form.game = name;
      draw();
    };
    return radio("game", `game-${name}`, title, () => form.game === name, change);
  });
  return h("div", { class: "games", role: "radiogroup", "aria-label": "Game" }, choices);
}

/** @param {Game} game */
function intro(game) {
  const steps = game.steps.map(([heading, text]) => h("li", {}, h("b", {}, heading), " ", text));
  return h("section", { class: "intro" }, h("h1", {}, game.slogan), h("ol", { class: "steps" }, steps));
}

/**
 * @param {Form} form
 * @param {Game} game
 * @param {App} app
 * @param {() => void} draw
 */
function newGameForm(form, game, app, draw) {
  const settings = settingsFor(form, game);
  const seats = settings.seats.slice(0, settings.players);
  const isWatched = !seats.includes("me");
  /** @param {boolean} hidden */
  const rows = (hidden) =>
    game.form.map(
      (row, index) => row.hidden === hidden && optionRow(settings, row, `${game.name}-${index}`, form, draw),
    );
  const hidden = rows(true);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    createGame(form, game, app);
  };
  const watchLabel = seats.includes("open") ? "Open the table" : "Watch them play";
  const card = h(
    "form",
    { class: "card new", submit },
    h("h2", {}, `New game of ${game.title}`),
    game.seats.length > 1 && playersRow(settings, game, draw),
    h(
      "div",
      { class: "seats" },
      seats.map((_, seat) => seatRow(settings, seat, game, draw)),
    ),
    rows(false),
    hidden.some(Boolean) && moreRows(form, hidden),
    ...(isWatched ? [] : userRows(form)),
    h("button", { class: "primary big", id: "start" }, isWatched ? watchLabel : "Start"),
  );
  const show = (/** @type {Event} */ { target }) => {
    if (target instanceof Element) target.closest("details")?.setAttribute("open", "");
  };
  card.addEventListener("invalid", show, true); // so that the invalid field is visible
  return card;
}

/**
 * Return the row for the number of players.
 * @param {GameSettings} settings
 * @param {Game} game
 * @param {() => void} draw
 */
function playersRow(settings, game, draw) {
  const choices = game.seats.map((count) => {
    const change = () => {
      settings.players = count;
      draw();
    };
    return radio("players", `players-${count}`, String(count), () => settings.players === count, change);
  });
  return h("fieldset", { class: "row" }, h("legend", {}, "Players"), choices);
}

/**
 * Return the rows that are hidden at first.
 * @param {Form} form
 * @param {(Element | false)[]} rows
 */
function moreRows(form, rows) {
  const more = h("details", { class: "more", open: form.more === true }, h("summary", {}, "More"), rows);
  more.addEventListener("toggle", () => {
    form.more = more.open;
    saveForm(form);
  });
  return more;
}

/**
 * Return the rows for users who play: clock, name, and whether finished games are stored.
 * @param {Form} form
 */
function userRows(form) {
  const options = CLOCKS.map(([value, label]) => h("option", { value, selected: value === form.clock }, label));
  const clock = h("select", { id: "clock" }, options);
  const name = h("input", {
    type: "text",
    id: "name",
    maxlength: 24,
    value: form.name,
    placeholder: "You",
    autocomplete: "nickname",
  });
  const keep = h("input", { type: "checkbox", id: "keep", checked: form.keep });
  clock.addEventListener("change", () => {
    form.clock = clock.value;
    saveForm(form);
  });
  name.addEventListener("input", () => {
    form.name = name.value;
    saveForm(form);
  });
  keep.addEventListener("change", () => {
    form.keep = keep.checked;
    saveForm(form);
  });
  const text = "Keep my finished games against agents on this computer, for the statistics of ";
  return [
    h("label", { class: "field" }, "Clock", clock),
    h("label", { class: "field" }, "Your name", name),
    h("label", { class: "agree" }, keep, h("span", {}, text, h("code", {}, "ninetka stats"))),
  ];
}

/** For each radio button, a function that returns whether it is chosen. @type {WeakMap<Element, () => boolean>} */
const radioTests = new WeakMap();

/**
 * Return a labelled radio button.
 * @param {string} name
 * @param {string} id
 * @param {string} label
 * @param {() => boolean} isChosen returns whether the button is chosen.
 * @param {() => void} change
 */
function radio(name, id, label, isChosen, change) {
  const input = h("input", { type: "radio", name, id, checked: isChosen(), change });
  radioTests.set(input, isChosen);
  return h("label", { class: "choice" }, input, h("span", {}, label));
}

/**
 * Return a row of the form.
 * @param {GameSettings} settings
 * @param {ChoicesRow | NumberRow} row
 * @param {string} id
 * @param {Form} form
 * @param {() => void} draw
 */
const optionRow = (settings, row, id, form, draw) =>
  row.name === undefined ? choicesRow(settings, row, id, draw) : numberRow(settings, row, form);

/**
 * @param {GameSettings} settings
 * @param {NumberRow} row
 * @param {Form} form
 */
function numberRow(settings, row, form) {
  const { name, minimum: min, maximum: max, step } = row;
  const id = `option-${name}`;
  const field = h("input", { type: "number", id, min, max, step, value: String(settings.options[name]) });
  // Do not redraw the form: the change event comes before the click on a button, which would miss its element.
  field.addEventListener("change", () => {
    if (!field.checkValidity() || field.value === "") return;
    settings.options[name] = Number(field.value);
    saveForm(form);
    for (const element of field.form?.elements ?? []) {
      const isChosen = radioTests.get(element);
      if (isChosen && element instanceof HTMLInputElement) element.checked = isChosen();
    }
  });
  return h("label", { class: "field" }, row.title, field);
}

/**
 * Return a row of values of which one is chosen; each value sets one or several options.
 * @param {GameSettings} settings
 * @param {ChoicesRow} row
 * @param {string} id
 * @param {() => void} draw
 */
function choicesRow(settings, row, id, draw) {
  /** @param {Options} options */
  const isChosen = (options) => Object.entries(options).every(([name, value]) => settings.options[name] === value);
  const choices = row.values.map(([sets, label], place) => {
    const change = () => {
      Object.assign(settings.options, sets);
      draw();
    };
    return radio(id, `${id}-${place}`, label, () => isChosen(sets), change);
  });
  return h("fieldset", { class: "row" }, h("legend", {}, row.title), choices);
}

/**
 * @param {GameSettings} settings
 * @param {number} seat
 * @param {Game} game
 * @param {() => void} draw
 */
function seatRow(settings, seat, game, draw) {
  const [name, option = ""] = settings.seats[seat].split(":");
  const agent = game.agents.find((each) => each.name === name);
  const value = Number(option.split("=")[1] ?? 0);
  const colour = game.colours[seat];
  /** @param {string} text */
  const set = (text) => {
    settings.seats[seat] = text;
    draw();
  };
  const offered = game.agents.filter((each) => supportsPlayers(each, settings.players));
  const agentSelect = h(
    "select",
    { id: `seat-${seat}`, "aria-label": `Who plays ${colour}` },
    h("option", { value: "me", selected: name === "me" }, "You"),
    h("option", { value: "open", selected: name === "open" }, "Someone else, by link"),
    offered.map((each) => h("option", { value: each.name, selected: name === each.name }, each.title)),
  );
  agentSelect.addEventListener("change", () => {
    const next = game.agents.find((each) => each.name === agentSelect.value);
    set(next?.default_strength ? `${next.name}:${next.option}=${next.default_strength}` : agentSelect.value);
  });
  const parts = [seatIcon(game.name, seat), h("span", { class: "colour" }, capitalize(colour)), agentSelect];
  if (!agent || agent.strengths.length < 2) return h("div", { class: "seat-row" }, ...parts);
  const current = value || agent.default_strength;
  const strength = h(
    "select",
    { id: `strength-${seat}`, "aria-label": `Strength of ${colour}` },
    agent.strengths.map(([amount, label]) => h("option", { value: amount, selected: amount === current }, label)),
  );
  strength.addEventListener("change", () => {
    const amount = Number(strength.value);
    set(amount ? `${name}:${agent.option}=${amount}` : name);
  });
  return h("div", { class: "seat-row" }, ...parts, strength);
}

/**
 * @param {Form} form
 * @param {Game} game
 * @param {App} app
 */
function createGame(form, game, app) {
  const { options, seats, players } = settingsFor(form, game);
  const specs = seats.slice(0, players);
  const hasPeople = specs.some((seat) => seat === "me" || seat === "open");
  const clock = form.clock && hasPeople ? form.clock.split("+").map(Number) : null;
  const { keep } = form;
  app.send({ type: "create", game: game.name, seats: specs, options, clock, name: form.name.trim(), keep });
}

/** @param {App} app */
function tableList(app) {
  const { tables, token } = app.welcome;
  if (!tables.length) return null;
  /** @param {string} table */
  const discard = async (table) => {
    await app.send({ type: "discard", table });
    app.send({ type: "hello", token });
  };
  /** @param {TableSummary} table */
  const row = ({ table, game: gameName, seat_names: names, ply, over, winner }) => {
    const game = app.game(gameName);
    const result = winner === null ? "given up" : winner === DRAWN ? "drawn" : `${game.colours[winner]} won`;
    const seats = names.map((name, seat) =>
      h("span", { class: "who" }, seatIcon(gameName, seat), seatLabel(game, name)),
    );
    const label = { "aria-label": "Remove this table", title: "Remove" };
    return h(
      "li",
      { "data-game": gameName },
      h("a", { href: `/t/${table}` }, h("b", {}, game.title), seats),
      h("span", { class: "faint" }, over ? result : `ply ${ply}`),
      h("button", { type: "button", class: "quiet", ...label, click: () => discard(table) }, "×"),
    );
  };
  return h("section", { class: "card" }, h("h2", {}, "Your tables"), h("ul", { class: "tables" }, tables.map(row)));
}

/**
 * Return the label of a seat in the list of the user's tables.
 * @param {Game} game
 * @param {string} name "person" for the user, "open", the name of another user, or the spec of an agent.
 */
function seatLabel(game, name) {
  if (name === "person") return "You";
  if (name === "open") return "open seat";
  return game.agents.some((agent) => agent.name === name.split(":")[0]) ? agentName(game, name) : name;
}

/**
 * @param {Form} form
 * @param {App} app
 */
function recordCard(form, app) {
  const area = h("textarea", {
    id: "record",
    rows: 4,
    spellcheck: "false",
    "aria-label": "Record or position",
    placeholder: "Paste a game record, SGF or a position here, or choose a file",
  });
  const accept = ".txt,.sgf,text/plain";
  const file = h("input", { type: "file", id: "file", "aria-label": "File of a record", accept });
  file.addEventListener("change", async () => {
    const text = file.files?.[0];
    if (!text) return;
    if (text.size > 2_000_000) {
      toast("this file is too large for game records");
      return;
    }
    area.value = await text.text();
    openText(area.value, form, app);
  });
  const open = h("button", { type: "button", id: "open-record", click: () => openText(area.value, form, app) }, "Open");
  const buttons = h("div", { class: "buttons" }, open, file);
  return h("section", { class: "card" }, h("h2", {}, "Look at a game"), area, buttons);
}

/** Maximum size of a game as JSON text, so that it fits into one message to the server. */
const MAX_BYTES = 60000;
/** Matches the start of each game record in a text. */
const RECORD_START = /^(?=game record, format)/m;
/** Matches the start of a position, by game. @type {Record<string, RegExp>} */
const POSITION_STARTS = { ninetka: /^\s*9tka\b/, go: /^\s*go\d+ /, kropki: /^\s*Kropki\b/ };

/**
 * Open text as a game record, or as a position to play from. If there are several records, ask for a number.
 * @param {string} text
 * @param {Form} form
 * @param {App} app
 */
function openText(text, form, app) {
  if (!text.trim()) return toast("paste a record or a position first");
  if (text.trimStart().startsWith("(")) return upload(text, app);
  if (!RECORD_START.test(text)) return openPosition(text, form, app);
  const games = text.split(RECORD_START).filter((game) => RECORD_START.test(game));
  const number = games.length === 1 ? 1 : Number(prompt(`There are ${games.length} games. Which one?`, "1"));
  if (!number) return undefined;
  if (!games[number - 1]) return toast(`there is no game ${number} among ${games.length}`);
  return upload(games[number - 1], app);
}

/**
 * @param {string} text
 * @param {App} app
 */
function upload(text, app) {
  const bytes = new TextEncoder().encode(JSON.stringify(text)).length;
  /** @param {number} count */
  const format = (count) => count.toLocaleString("en");
  const limit = `at most ${format(MAX_BYTES)} are allowed`;
  const tooLong = `This game is too long to be opened here: it has ${format(bytes)} bytes, ${limit}`;
  if (bytes > MAX_BYTES) toast(tooLong);
  else app.send({ type: "upload", text });
}

/**
 * @param {string} text
 * @param {Form} form
 * @param {App} app
 */
function openPosition(text, form, app) {
  const game = Object.keys(POSITION_STARTS).find((name) => POSITION_STARTS[name].test(text)) ?? form.game;
  const players = Number(text.match(/players=([234])/)?.[1] ?? 2);
  const seats = settingsFor(form, app.game(game)).seats.slice(0, players);
  app.send({ type: "create", game, seats, name: form.name.trim(), position: text });
}
