// Creates elements without markup in strings, so that text from users is never parsed as HTML.

/** @import { Attributes, Child, Game } from "../../tools/page/types" */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Set attributes and append children. Functions become listeners, `true` sets an empty attribute, `false` sets none.
 * @template {Element} E
 * @param {E} element
 * @param {Attributes<E>} attributes
 * @param {Child[]} children
 */
function initElement(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, /** @type {EventListener} */ (value));
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/**
 * Create an HTML element.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes<HTMLElementTagNameMap[Tag]>} attributes
 * @param {Child[]} children
 */
export const h = (tag, attributes = {}, ...children) => initElement(document.createElement(tag), attributes, children);

/**
 * Create an SVG element.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes<SVGElementTagNameMap[Tag]>} attributes
 * @param {Child[]} children
 */
export const svg = (tag, attributes = {}, ...children) =>
  initElement(document.createElementNS(SVG, tag), attributes, children);

/**
 * Return a value after checking that it is neither null nor undefined.
 * @template Value
 * @param {Value} value
 */
export function assertDefined(value) {
  if (value == null) throw new Error("a value is used that is not defined yet");
  return value;
}

/** Return the element of index.html with an id. @param {string} id */
export const byId = (id) => assertDefined(document.getElementById(id));

/** Announce a text to screen readers. @param {string} text */
export function announce(text) {
  byId("live").textContent = text;
}

/** Show a short message for a few seconds; it replaces the previous one. @param {string} text */
export function toast(text) {
  const note = h("div", { class: "toast" }, text);
  byId("toasts").replaceChildren(note);
  setTimeout(() => note.remove(), 6000);
}

/**
 * Copy text to the clipboard; if the browser refuses, show the text so that the user can copy it.
 * @param {string} text
 * @param {string} title
 */
export async function copy(text, title) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${title} copied`);
  } catch {
    window.prompt(`Copy the ${title.toLowerCase()}:`, text);
  }
}

/** @param {string} text */
export const capitalize = (text) => text[0].toUpperCase() + text.slice(1);

/** Join words with commas and "and". @param {string[]} words */
export const joinWords = (words) =>
  words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0];

/** The winner of a drawn game. */
export const DRAWN = -1;

/**
 * Return the displayed name of an agent: its title and its strength.
 * @param {Game} game
 * @param {string} spec
 */
export function agentName(game, spec) {
  const [name, option] = spec.split(":");
  const agent = game.agents.find((each) => each.name === name);
  const number = Number(option?.split("=")[1] ?? agent?.default_strength ?? 0);
  return `${agent ? agent.title.split(" (")[0] : capitalize(name)}${number ? `, ${number.toLocaleString("en")}` : ""}`;
}
