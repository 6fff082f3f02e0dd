// The first page: a new game, the games one has at hand, and records to look at. What there is to choose the server
// tells.

import { DRAWN, agentName, capital, h, toast } from "./dom.js";
import { loadFace, seatIcon } from "./board.js";

/** @import { App, ChoicesRow, Form, Game, NumberRow, Options, Part, TableLine } from "../../tools/page/types" */

const FORM = "ninetka-form";

const CLOCKS = [
  ["", "none"],
  ["60+2", "1 minute, 2 seconds more each turn"],
  ["180+3", "3 minutes, 3 seconds more"],
  ["600+5", "10 minutes, 5 seconds more"],
  ["1800+20", "30 minutes, 20 seconds more"],
];

/** What was chosen last; of each game its options and seats. @type {(app: App) => Form} */
function remembered(app) {
  /** @type {Form} */
  const fresh = { game: app.welcome.games[0].name, name: "", clock: "", keep: false, more: false, games: {} };
  try {
    return { ...fresh, ...JSON.parse(localStorage.getItem(FORM) ?? "{}") };
  } catch {
    return fresh;
  }
}

/** @param {Form} form */
const save = (form) => localStorage.setItem(FORM, JSON.stringify(form));

/**
 * The part of the form that is about one game, whatever an earlier version has left there.
 * @param {Form} form
 * @param {Game} game
 */
function partOf(form, game) {
  const { options = {}, seats = [], players = game.seats[0] } = form.games[game.name] ?? {};
  const own = Object.fromEntries(Object.entries(game.defaults).map(([name, value]) => [name, options[name] ?? value]));
  /** @param {string | undefined} spec */
  const plays = (spec) =>
    spec && game.agents.every((agent) => agent.name !== spec.split(":")[0] || playsAt(agent, players));
  const usual = Array.from({ length: Math.max(...game.seats) }, (_, seat) => (seat ? game.opponent : "me"));
  const all = usual.map((spec, seat) => (plays(seats[seat]) ? seats[seat] : spec));
  /** @type {Part} */
  const part = { options: own, seats: all, players };
  form.games[game.name] = part;
  return part;
}

/**
 * Return whether an agent can play with this number of players.
 * @param {{ seats: number[] }} agent
 * @param {number} players
 */
const playsAt = ({ seats }, players) => !seats.length || seats.includes(players);

/**
 * Show the page in `main`.
 * @param {HTMLElement} main
 * @param {App} app
 */
export async function showHome(main, app) {
  const form = remembered(app);
  const { games } = app.welcome;
  if (!games.some((game) => game.name === form.game)) form.game = games[0].name;
  const draw = async () => {
    const game = app.game(form.game);
    save(form);
    await Promise.all([...new Set([form.game, ...app.welcome.tables.map((table) => table.game)])].map(loadFace));
    if (location.pathname.startsWith("/t/")) return;
    document.title = game.title;
    app.about(game);
    const focused = document.activeElement?.id;
    const parts = [choose(form, app, draw), intro(game), newGame(form, game, app, draw), ownTables(app)];
    main.replaceChildren(h("div", { class: "home", "data-game": game.name }, ...parts, openRecord(form, app)));
    if (focused) document.getElementById(focused)?.focus();
  };
  await draw();
}

/**
 * @param {Form} form
 * @param {App} app
 * @param {() => void} draw
 */
function choose(form, app, draw) {
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
  const steps = game.steps.map(([what, text]) => h("li", {}, h("b", {}, what), " ", text));
  return h("section", { class: "intro" }, h("h1", {}, game.slogan), h("ol", { class: "steps" }, steps));
}

/**
 * @param {Form} form
 * @param {Game} game
 * @param {App} app
 * @param {() => void} draw
 */
function newGame(form, game, app, draw) {
  const part = partOf(form, game);
  const seats = part.seats.slice(0, part.players);
  const alone = !seats.includes("me");
  /** @param {boolean} hidden */
  const rows = (hidden) =>
    game.form.map((row, index) => row.hidden === hidden && optionRow(part, row, `${game.name}-${index}`, form, draw));
  const hidden = rows(true);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    start(form, game, app);
  };
  const watch = seats.includes("open") ? "Open the table" : "Watch them play";
  const card = h(
    "form",
    { class: "card new", submit },
    h("h2", {}, `New game of ${game.title}`),
    game.seats.length > 1 && playersRow(part, game, draw),
    h(
      "div",
      { class: "seats" },
      seats.map((_, seat) => seatRow(part, seat, game, draw)),
    ),
    rows(false),
    hidden.some(Boolean) && moreRows(form, hidden),
    ...(alone ? [] : personRows(form)),
    h("button", { class: "primary big", id: "start" }, alone ? watch : "Start"),
  );
  const show = (/** @type {Event} */ { target }) => {
    if (target instanceof Element) target.closest("details")?.setAttribute("open", "");
  };
  card.addEventListener("invalid", show, true); // to be seen
  return card;
}

/**
 * How many play.
 * @param {Part} part
 * @param {Game} game
 * @param {() => void} draw
 */
function playersRow(part, game, draw) {
  const choices = game.seats.map((count) => {
    const change = () => {
      part.players = count;
      draw();
    };
    return radio("players", `players-${count}`, String(count), () => part.players === count, change);
  });
  return h("fieldset", { class: "row" }, h("legend", {}, "Players"), choices);
}

/**
 * The rows that few want to see.
 * @param {Form} form
 * @param {(Element | false)[]} rows
 */
function moreRows(form, rows) {
  const more = h("details", { class: "more", open: form.more === true }, h("summary", {}, "More"), rows);
  more.addEventListener("toggle", () => {
    form.more = more.open;
    save(form);
  });
  return more;
}

/**
 * What the person who plays chooses apart from the game: a clock, a name, and whether games are kept.
 * @param {Form} form
 */
function personRows(form) {
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
    save(form);
  });
  name.addEventListener("input", () => {
    form.name = name.value;
    save(form);
  });
  keep.addEventListener("change", () => {
    form.keep = keep.checked;
    save(form);
  });
  const text = "Keep my finished games against agents on this computer, for the statistics of ";
  return [
    h("label", { class: "field" }, "Clock", clock),
    h("label", { class: "field" }, "Your name", name),
    h("label", { class: "agree" }, keep, h("span", {}, text, h("code", {}, "ninetka table"))),
  ];
}

/** Whether a button is the one that is chosen, by button. @type {WeakMap<Element, () => boolean>} */
const chosen = new WeakMap();

/**
 * A button of several.
 * @param {string} name
 * @param {string} id
 * @param {string} label
 * @param {() => boolean} fits returns whether it is the one that is chosen.
 * @param {() => void} change
 */
function radio(name, id, label, fits, change) {
  const input = h("input", { type: "radio", name, id, checked: fits(), change });
  chosen.set(input, fits);
  return h("label", { class: "choice" }, input, h("span", {}, label));
}

/**
 * A row of the form.
 * @param {Part} part
 * @param {ChoicesRow | NumberRow} row
 * @param {string} id
 * @param {Form} form
 * @param {() => void} draw
 */
const optionRow = (part, row, id, form, draw) =>
  row.name === undefined ? choicesRow(part, row, id, draw) : numberRow(part, row, form);

/**
 * @param {Part} part
 * @param {NumberRow} row
 * @param {Form} form
 */
function numberRow(part, row, form) {
  const { name, least, most, step } = row;
  const id = `option-${name}`;
  const field = h("input", { type: "number", id, min: least, max: most, step, value: String(part.options[name]) });
  // Nothing is drawn anew: a click on a button ends the change, and would miss it.
  field.addEventListener("change", () => {
    if (!field.checkValidity() || field.value === "") return;
    part.options[name] = Number(field.value);
    save(form);
    for (const one of field.form?.elements ?? []) {
      const fits = chosen.get(one);
      if (fits && one instanceof HTMLInputElement) one.checked = fits();
    }
  });
  return h("label", { class: "field" }, row.title, field);
}

/**
 * One of a few values, each of which may set several options.
 * @param {Part} part
 * @param {ChoicesRow} row
 * @param {string} id
 * @param {() => void} draw
 */
function choicesRow(part, row, id, draw) {
  /** @param {Options} sets */
  const fits = (sets) => Object.entries(sets).every(([name, value]) => part.options[name] === value);
  const choices = row.values.map(([sets, label], place) => {
    const change = () => {
      Object.assign(part.options, sets);
      draw();
    };
    return radio(id, `${id}-${place}`, label, () => fits(sets), change);
  });
  return h("fieldset", { class: "row" }, h("legend", {}, row.title), choices);
}

/**
 * @param {Part} part
 * @param {number} seat
 * @param {Game} game
 * @param {() => void} draw
 */
function seatRow(part, seat, game, draw) {
  const [name, option = ""] = part.seats[seat].split(":");
  const agent = game.agents.find((one) => one.name === name);
  const value = Number(option.split("=")[1] ?? 0);
  const colour = game.colours[seat];
  /** @param {string} text */
  const set = (text) => {
    part.seats[seat] = text;
    draw();
  };
  const seen = game.agents.filter((one) => playsAt(one, part.players));
  const who = h(
    "select",
    { id: `seat-${seat}`, "aria-label": `Who plays ${colour}` },
    h("option", { value: "me", selected: name === "me" }, "You"),
    h("option", { value: "open", selected: name === "open" }, "Someone else, by link"),
    seen.map((one) => h("option", { value: one.name, selected: name === one.name }, one.title)),
  );
  who.addEventListener("change", () => {
    const next = game.agents.find((one) => one.name === who.value);
    set(next?.usual ? `${next.name}:${next.option}=${next.usual}` : who.value);
  });
  const parts = [seatIcon(game.name, seat), h("span", { class: "colour" }, capital(colour)), who];
  if (!agent || agent.strengths.length < 2) return h("div", { class: "seat-row" }, ...parts);
  const usual = value || agent.usual;
  const strength = h(
    "select",
    { id: `strength-${seat}`, "aria-label": `Strength of ${colour}` },
    agent.strengths.map(([amount, label]) => h("option", { value: amount, selected: amount === usual }, label)),
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
function start(form, game, app) {
  const { options, seats, players } = partOf(form, game);
  const taken = seats.slice(0, players);
  const hasPeople = taken.some((seat) => seat === "me" || seat === "open");
  const clock = form.clock && hasPeople ? form.clock.split("+").map(Number) : null;
  const { keep } = form;
  app.ask({ type: "create", game: game.name, seats: taken, options, clock, name: form.name.trim(), keep });
}

/** @param {App} app */
function ownTables(app) {
  const { tables, token } = app.welcome;
  if (!tables.length) return null;
  /** @param {string} table */
  const discard = async (table) => {
    await app.ask({ type: "discard", table });
    app.ask({ type: "hello", token });
  };
  /** @param {TableLine} line */
  const row = ({ table, game: gameName, who, ply, over, winner }) => {
    const game = app.game(gameName);
    const won = winner === null ? "given up" : winner === DRAWN ? "drawn" : `${game.colours[winner]} won`;
    const seats = who.map((one, seat) => h("span", { class: "who" }, seatIcon(gameName, seat), whoIs(game, one)));
    const label = { "aria-label": "Remove this table", title: "Remove" };
    return h(
      "li",
      { "data-game": gameName },
      h("a", { href: `/t/${table}` }, h("b", {}, game.title), seats),
      h("span", { class: "faint" }, over ? won : `ply ${ply}`),
      h("button", { type: "button", class: "quiet", ...label, click: () => discard(table) }, "×"),
    );
  };
  return h("section", { class: "card" }, h("h2", {}, "Your tables"), h("ul", { class: "tables" }, tables.map(row)));
}

/**
 * Name who sits at a table of one's own.
 * @param {Game} game
 * @param {string} who
 */
function whoIs(game, who) {
  if (who === "person") return "You";
  if (who === "open") return "open seat";
  return game.agents.some((agent) => agent.name === who.split(":")[0]) ? agentName(game, who) : who;
}

/**
 * @param {Form} form
 * @param {App} app
 */
function openRecord(form, app) {
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

/** How long a game may be as text, so that it is one message to the server. */
const MOST_BYTES = 60000;
/** Where a record begins. */
const HEAD = /^(?=game record, format)/m;
/** How a position begins, by game. @type {Record<string, RegExp>} */
const POSITIONS = { ninetka: /^\s*9tka\b/, go: /^\s*go\d+ /, kropki: /^\s*Kropki\b/ };

/**
 * Open text as a record, or as a position to play on from; of several records a number is asked for.
 * @param {string} text
 * @param {Form} form
 * @param {App} app
 */
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

/**
 * @param {string} text
 * @param {App} app
 */
function upload(text, app) {
  const bytes = new TextEncoder().encode(JSON.stringify(text)).length;
  /** @param {number} count */
  const say = (count) => count.toLocaleString("en");
  const tooLong = `This game is too long to be opened here: it has ${say(bytes)} bytes, ${say(MOST_BYTES)} are allowed`;
  if (bytes > MOST_BYTES) toast(tooLong);
  else app.ask({ type: "upload", text });
}

/**
 * @param {string} text
 * @param {Form} form
 * @param {App} app
 */
function openPosition(text, form, app) {
  const game = Object.keys(POSITIONS).find((one) => POSITIONS[one].test(text)) ?? form.game;
  const players = Number(text.match(/players=([234])/)?.[1] ?? 2);
  const seats = partOf(form, app.game(game)).seats.slice(0, players);
  app.ask({ type: "create", game, seats, name: form.name.trim(), position: text });
}
