// Elements from names, attributes and children. Text only ever becomes a text node: nothing that a
// record says is read as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
const byId = (id) => document.getElementById(id);

function select(label, options, value, onchange) {
  const box = el("select", { onchange: () => onchange(box.value) },
    options.map(([key, text]) => el("option", { value: key, selected: String(key) === String(value) }, text)));
  return el("label", {}, label, box);
}

function choice(legend, name, options, value, onchange) {
  return el("fieldset", {}, el("legend", { class: "hidden-text" }, legend), options.map(([key, text]) =>
    el("label", { class: "check" },
      el("input", { type: "radio", name, value: key, checked: String(key) === String(value), onchange: () => onchange(key) }), text)));
}

// What is wider than the screen scrolls in a place of its own, by keys, too.
const wide = (label, ...content) => el("div", { class: "wide", role: "region", "aria-label": label, tabindex: 0 }, content);

// A table whose first column heads the rows. Cells are texts, nodes, or [text, class].
function plainTable(heads, rows, attributes = {}, caption = "") {
  const cell = (value, i) => {
    const [content, kind] = Array.isArray(value) ? value : [value, null];
    return i ? el("td", { class: kind }, content) : el("th", { scope: "row", class: kind }, content);
  };
  const kindOf = (i) => (rows.length && Array.isArray(rows[0][i]) && rows[0][i][1] === "number" ? "number" : null);
  return el("table", attributes,
    caption && el("caption", {}, caption),
    el("thead", {}, el("tr", {}, heads.map((head, i) => el("th", { scope: "col", class: kindOf(i) }, head)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell)))));
}
