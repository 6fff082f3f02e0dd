// Building pages: elements without markup in strings, so no text from elsewhere is ever read as HTML.

/** @import { Attributes, Child, Game } from "../../tools/page/types" */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Set attributes; functions become listeners, `true` and `false` presence.
 * @template {Element} E
 * @param {E} element
 * @param {Attributes<E>} attributes
 * @param {Child[]} children
 */
function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, /** @type {EventListener} */ (value));
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/**
 * Make an HTML element.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes<HTMLElementTagNameMap[Tag]>} attributes
 * @param {Child[]} children
 */
export const h = (tag, attributes = {}, ...children) => dress(document.createElement(tag), attributes, children);

/**
 * Make an SVG element.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes<SVGElementTagNameMap[Tag]>} attributes
 * @param {Child[]} children
 */
export const svg = (tag, attributes = {}, ...children) =>
  dress(document.createElementNS(SVG, tag), attributes, children);

/**
 * Return what must be there by now.
 * @template Thing
 * @param {Thing} thing
 */
export function known(thing) {
  if (thing == null) throw new Error("something is used that is not there yet");
  return thing;
}

/** The element of index.html with an id. @param {string} id */
export const byId = (id) => known(document.getElementById(id));

/** Say something to screen readers. @param {string} text */
export function announce(text) {
  byId("live").textContent = text;
}

/** Show a short message that goes away by itself, in place of the one before. @param {string} text */
export function toast(text) {
  const note = h("div", { class: "toast" }, text);
  byId("toasts").replaceChildren(note);
  setTimeout(() => note.remove(), 6000);
}

/**
 * Copy text, where the browser lets us; else show it to be copied by hand.
 * @param {string} text
 * @param {string} what
 */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    window.prompt(`Copy the ${what.toLowerCase()}:`, text);
  }
}

/** @param {string} text */
export const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** Name several things. @param {string[]} words */
export const list = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0]);

/** The winner of a drawn game; null while nobody has won. */
export const DRAWN = -1;

/**
 * The name of an agent as people say it: what the game calls it, and its number.
 * @param {Game} game
 * @param {string} spec
 */
export function agentName(game, spec) {
  const [name, option] = spec.split(":");
  const agent = game.agents.find((one) => one.name === name);
  const number = Number(option?.split("=")[1] ?? agent?.usual ?? 0);
  return `${agent ? agent.title.split(" (")[0] : capital(name)}${number ? `, ${number.toLocaleString("en")}` : ""}`;
}
