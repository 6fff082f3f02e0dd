// Building pages: elements without markup in strings, so no text from elsewhere is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Set attributes; functions become listeners, `true` and `false` presence. */
function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/** Make an HTML element. */
export const h = (tag, attributes = {}, ...children) => dress(document.createElement(tag), attributes, children);

/** Make an SVG element. */
export const svg = (tag, attributes = {}, ...children) => dress(document.createElementNS(SVG, tag), attributes, children);

/** Say something to screen readers. */
export function announce(text) {
  document.getElementById("live").textContent = text;
}

/** Show a short message that goes away by itself. */
export function toast(text) {
  const note = h("div", { class: "toast" }, text);
  const box = document.getElementById("toasts");
  box.append(note);
  while (box.children.length > 3) box.firstChild.remove();
  setTimeout(() => note.remove(), 6000);
}

/** Copy text, where the browser lets us; else show it to be copied by hand. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    window.prompt(`Copy the ${what.toLowerCase()}:`, text);
  }
}
