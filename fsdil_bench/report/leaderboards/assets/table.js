// The table of a sheet: methods down, shots across, sortable by every column.

const VOID = { scores: [[null], [null], [null], [null]] };
const MARKS = { tied: "≈", undecided: "?" };
const seedCount = (cell) => (cell.runs ? cell.runs.length : 0);

function scoreText(cell, i) {
  const [average, std, low, high, place, covers] = cell.scores[i];
  const parts = [`${two(average)}${std === null ? "" : ` ± ${two(std)}`}`];
  if (low !== undefined && low !== null) parts.push(`95 % interval ${two(low)} to ${two(high)} (${covers})`);
  if (PLACES[place]) parts.push(PLACES[place]);
  return parts.join("; ");
}

function scoreCell(cell, column, first) {
  const edge = first ? " first" : "";
  const value = column.value(cell);
  if (value === null || value === undefined) {
    const state = cell.state || ABSENT;
    return el("td", { class: `score void${edge}${state.includes("failed") ? " failed" : ""}` }, state);
  }
  if (column.format) return el("td", { class: `score${edge}` }, column.format(value));
  const [average, std, , , place] = cell.scores[column.score];
  const marks = `${MARKS[place] || ""}${seedCount(cell) === 1 ? "°" : ""}`;
  const missing = cell.missing ? `${seedCount(cell)}/${seedCount(cell) + cell.missing.length} seeds` : "";
  return el("td", { class: `score${edge} ${place || ""}`, title: scoreText(cell, column.score) },
    marks && el("span", { class: "mark", "aria-hidden": "true" }, marks), two(average),
    place === "best" && el("span", { class: "hidden-text" }, " best"),
    MARKS[place] && el("span", { class: "hidden-text" }, ` ${PLACES[place]}`),
    std !== null && el("small", {}, `± ${two(std)}`),
    missing && el("small", { class: cell.state && cell.state.includes("failed") ? "failed" : "" }, missing));
}

// How the rows of a sheet are ordered: by "method", "seeds" or [shots, column].
function compareRows(sort) {
  const direction = sort.up ? 1 : -1;
  if (sort.key === "method") return (a, b) => direction * a.label.localeCompare(b.label);
  const value = (row) => {
    const cell = row.cells[sort.shots] || VOID;
    return sort.column.value(cell);
  };
  return (a, b) => {
    const [x, y] = [value(a), value(b)];
    const [noX, noY] = [x === null || x === undefined, y === null || y === undefined];
    if (noX || noY) return noX - noY; // what has no value comes last, whichever way
    return direction * (x - y) || a.label.localeCompare(b.label);
  };
}

function sortHead(view, key, text, attributes, again) {
  const sort = view.sort;
  const on = sort && sort.id === key.id;
  const order = on ? (sort.up ? "ascending" : "descending") : "none";
  return el("th", { scope: "col", "aria-sort": order, ...attributes },
    el("button", { type: "button", class: "sort", "data-sort": key.id, onclick: () => {
      view.sort = { ...key, up: on ? !sort.up : Boolean(key.upFirst) };
      again(key.id);
    } }, text));
}

function boardTable(sheet, view, rows, shots, columns, again) {
  const top = el("tr", {},
    el("th", { scope: "col", rowspan: 2 }, el("small", { class: "quiet" }, "compare")),
    sortHead(view, { id: "method", key: "method", upFirst: true }, "method", { rowspan: 2, class: "method" }, again),
    shots.map((k) => el("th", { scope: "colgroup", colspan: columns.length, class: "first" }, `${k}-shot`)));
  const second = el("tr", {}, shots.map((k) => columns.map((column, i) =>
    sortHead(view, { id: `${k} ${column.name}`, shots: k, column, upFirst: Boolean(column.format) },
      column.name, { class: `number${i ? "" : " first"}` }, again))));
  const ordered = view.sort ? [...rows].sort(compareRows(view.sort)) : rows;
  const body = ordered.map((row) => el("tr", { "data-label": row.label },
    el("td", {}, el("input", { type: "checkbox", "aria-label": `compare ${row.label}`, checked: view.picked.has(row.label),
      onchange: (event) => view.pick(row.label, event.target.checked) })),
    el("th", { scope: "row", class: "method" },
      el("button", { type: "button", "aria-haspopup": "dialog", title: row.summary, onclick: () => openDetails(sheet, row, shots[0]) }, row.label),
      badgesOf(row, shots).map(badgeButton)),
    shots.map((k) => columns.map((column, i) => scoreCell(row.cells[k] || VOID, column, !i)))));
  return el("table", { class: shots.length * columns.length > 5 ? "board full" : "board" },
    el("caption", { class: "hidden-text" }, `${sheet.title}, ${sheet.backbone}: methods by ${columns.map((c) => c.name).join(" and ")}`),
    el("thead", {}, top, second), el("tbody", {}, body));
}

function tableLegend(rows, shots, columns) {
  const cells = rows.flatMap((row) => shots.map((k) => row.cells[k]).filter(Boolean));
  if (columns[0].format) return el("p", { class: "quiet legend" }, "Cost as measured on the machines of the runs.");
  return el("ul", { class: "legend" },
    el("li", {}, "percent, mean ± standard deviation over seeds; higher is better"),
    el("li", {}, el("b", { class: "swatch score best" }, "bold"), " best mean"),
    el("li", {}, el("b", { class: "swatch score tied" }, "≈"), " not distinguishable from the best (95 %)"),
    cells.some((cell) => columns.some(({ score }) => cell.scores[score][4] === "undecided")) &&
      el("li", {}, el("b", { class: "swatch score undecided" }, "?"), " undecided: not known to be worse, but the board could not have seen whether it is"),
    cells.some((cell) => seedCount(cell) === 1) &&
      el("li", {}, el("b", {}, "°"), " one seed: what another draw or training would give is not known"),
    cells.some((cell) => cell.missing) && el("li", {}, "2/3 seeds: other methods have more"));
}
