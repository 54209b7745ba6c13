// The page: filters, a section per sheet, the theme.

const filters = { dataset: "", backbone: "", columns: "", text: "", free: false, sealed: false, shots: new Set() };
const narrow = matchMedia("(max-width: 640px)");
let redraws = [];

const views = new Map(data.sheets.map((sheet, i) => [sheet, {
  sort: null,
  picked: new Set(),
  scatter: { metric: 0, cost: 0, shots: sheet.shots[0], open: i === 0 },
  compare: { shots: sheet.shots[0], open: false },
}]));

const about = (sheet) => [
  `${sheet.classes.length} classes`,
  `domains: ${sheet.domains.join(", ")}`,
  `${testImages(sheet).toLocaleString("en")} test images`,
  sheet.precision,
  ...Object.entries(sheet.options).map(([key, value]) => `${key} ${shown(value)}`),
].join(" · ");

function chosenRows(sheet, shots) {
  const wanted = filters.text.toLowerCase().split(/\s+/).filter(Boolean);
  return sheet.rows.filter((row) => {
    const cells = shots.map((k) => row.cells[k]).filter(Boolean);
    if (!cells.length || (filters.free && !row.free)) return false;
    if (filters.sealed && !cells.some(sealedCell)) return false;
    const text = haystack(row);
    return wanted.every((word) => text.includes(word));
  });
}

function paperPanel(sheet) {
  const numbers = data.paper.filter((each) => each[4] === sheet.name);
  if (!numbers.length) return null;
  const rows = numbers.map(([, shots, metric, label, , reported, measured, std, difference, kind, verdict]) => [
    label, `${shots}-shot`, metric, [reported, "number"], [`${two(measured)}${std === null ? "" : ` ± ${two(std)}`}`, "number"],
    [signed(difference), "number"], [verdict, kind === "not reproduced" ? "failed" : ""]]);
  return el("details", { class: "panel" }, el("summary", {}, "Against the paper"),
    wide("Against the paper",
      plainTable(["method", "shots", "score", "reported", "measured", "difference", "verdict"], rows, { class: "plain" })));
}

function sheetSection(sheet) {
  const view = views.get(sheet);
  const shots = sheet.shots.filter((k) => filters.shots.has(k));
  const rows = shots.length ? chosenRows(sheet, shots) : [];
  if (!rows.length) return null;
  const columns = COLUMNS[filters.columns];
  const place = wide(`${sheet.title}, table`);
  const again = (focus) => {
    place.replaceChildren(boardTable(sheet, view, rows, shots, columns, again));
    if (focus) [...place.querySelectorAll("button.sort")].find((button) => button.dataset.sort === focus).focus();
  };
  const slot = el("div", { class: "slot" });
  const showCompare = () => {
    const panel = comparePanel(sheet, shots, view);
    slot.replaceChildren(panel);
    return panel;
  };
  view.pick = (label, on) => {
    if (on) view.picked.add(label); else view.picked.delete(label);
    view.compare.open = view.picked.size > 1;
    showCompare();
  };
  view.clear = () => { view.picked.clear(); view.compare.open = false; again(); showCompare(); };
  const scatter = scatterPanel(sheet, rows, shots, view.scatter);
  redraws.push(() => { scatter.redraw(); slot.firstChild.redraw(); });
  again();
  showCompare();
  return el("section", { class: "sheet", "aria-label": `${sheet.title}, ${sheet.backbone}` },
    el("header", {}, el("h2", {}, `${sheet.title} · ${sheet.backbone}`), el("p", { class: "quiet" }, about(sheet))),
    place, tableLegend(rows, shots, columns), standingList(sheet, shots, columns), slot, scatter, paperPanel(sheet));
}

function strayNote() {
  if (!data.stray.length) return null;
  return el("section", { class: "sheet" }, el("h2", {}, "Scenarios without any result"),
    wide("unfinished runs",
      plainTable(["scenario", "method", "seed", "state", "error"], data.stray.map((run) => run.map(String)), { class: "plain" })));
}

// What the paper reports and nobody ran here, as it is printed: shots and scores across.
function notRun() {
  const missing = data.paper.filter((each) => each[9] === "not run");
  if (!missing.length) return null;
  const tables = [...new Set(missing.map(([dataset]) => dataset))].map((dataset) => {
    const own = missing.filter((each) => each[0] === dataset);
    const columns = [...new Set(own.map(([, shots, metric]) => `${metric} ${shots}-shot`))];
    const numbers = new Map(own.map(([, shots, metric, label, , reported]) => [`${label} ${metric} ${shots}-shot`, reported]));
    const rows = [...new Set(own.map((each) => each[3]))].map((label) => [label,
      ...columns.map((column) => [numbers.get(`${label} ${column}`) || ABSENT, "number"])]);
    return [el("h3", {}, dataset), wide(`reported and not run: ${dataset}`, plainTable(["method", ...columns], rows, { class: "plain" }))];
  });
  return el("section", { class: "sheet" }, el("details", {},
    el("summary", {}, `Reported in the paper and not run here: ${missing.length} numbers`), tables));
}

function draw() {
  redraws = [];
  writeAddress();
  const sheets = data.sheets.filter((sheet) => (!filters.dataset || sheet.title === filters.dataset) && (!filters.backbone || sheet.backbone === filters.backbone));
  const sections = sheets.map(sheetSection).filter(Boolean);
  const shownRows = sections.reduce((sum, section) => sum + section.querySelectorAll(".board tbody tr").length, 0);
  const all = data.sheets.reduce((sum, sheet) => sum + sheet.rows.length, 0);
  byId("count").textContent = `${shownRows} of ${all} methods shown`;
  byId("boards").replaceChildren(...(sections.length ? sections : [el("p", { class: "empty" }, data.sheets.length ? "Nothing fits these filters." : "There is no result yet.")]),
    ...[strayNote(), notRun()].filter(Boolean));
  redraws.forEach((redraw) => redraw()); // now that widths are known
}

// The filters stand in the address, so that a view can be sent to somebody.
const allShots = [...new Set(data.sheets.flatMap((sheet) => sheet.shots))].sort((a, b) => a - b);
const usualColumns = () => (narrow.matches ? "AA* only" : "AA* and FA*");

function writeAddress() {
  const said = new URLSearchParams();
  for (const name of ["dataset", "backbone", "text"]) if (filters[name]) said.set(name, filters[name]);
  for (const name of ["free", "sealed"]) if (filters[name]) said.set(name, "1");
  if (filters.columns !== usualColumns()) said.set("columns", filters.columns);
  if (filters.shots.size < allShots.length) said.set("shots", [...filters.shots].join(" "));
  const hash = String(said);
  try {
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  } catch { /* some browsers refuse in files */ }
}

function readAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  const one = (name, known) => (known.includes(said.get(name)) ? said.get(name) : "");
  filters.dataset = one("dataset", data.sheets.map((sheet) => sheet.title));
  filters.backbone = one("backbone", data.sheets.map((sheet) => sheet.backbone));
  filters.columns = one("columns", Object.keys(COLUMNS)) || usualColumns();
  filters.text = said.get("text") || "";
  filters.free = said.has("free");
  filters.sealed = said.has("sealed");
  const wanted = (said.get("shots") || "").split(" ").map(Number);
  filters.shots = new Set(said.has("shots") ? allShots.filter((k) => wanted.includes(k)) : allShots);
  for (const name of ["dataset", "backbone", "columns", "text"]) byId(name).value = filters[name];
  for (const name of ["free", "sealed"]) byId(name).checked = filters[name];
  for (const box of byId("shots").querySelectorAll("input")) box.checked = filters.shots.has(Number(box.value));
}

function options(id, values, all) {
  byId(id).replaceChildren(el("option", { value: "" }, all), ...values.map((value) => el("option", { value }, value)));
}

function bind(id, event, read) {
  byId(id).addEventListener(event, () => { filters[id] = read(byId(id)); draw(); });
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `switch to ${theme === "dark" ? "light" : "dark"} colours`);
}

function remembered() {
  try { return localStorage.getItem("theme"); } catch { return null; } // some browsers refuse in files
}

function begin() {
  const unique = (values) => [...new Set(values)].sort((a, b) => (a > b) - (a < b));
  options("dataset", unique(data.sheets.map((sheet) => sheet.title)), "all");
  options("backbone", unique(data.sheets.map((sheet) => sheet.backbone)), "all");
  byId("columns").replaceChildren(...Object.keys(COLUMNS).map((name) => el("option", { value: name }, name)));
  byId("shots").append(...allShots.map((k) => el("label", { class: "check" }, el("input", { type: "checkbox", value: k,
    onchange: (event) => { if (event.target.checked) filters.shots.add(k); else filters.shots.delete(k); draw(); } }), String(k))));
  bind("dataset", "change", (box) => box.value);
  bind("backbone", "change", (box) => box.value);
  bind("columns", "change", (box) => box.value);
  bind("text", "input", (box) => box.value);
  bind("free", "change", (box) => box.checked);
  bind("sealed", "change", (box) => box.checked);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  const runs = data.sheets.flatMap((sheet) => sheet.rows.flatMap((row) => Object.values(row.cells).map(seedCount))).reduce((a, b) => a + b, 0);
  byId("totals").textContent = `${runs} runs in ${data.sheets.length} ${data.sheets.length === 1 ? "table" : "tables"}; what does not compare is never mixed.`;
  setTheme(remembered() || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    setTheme(theme);
    try { localStorage.setItem("theme", theme); } catch { /* then not */ }
  });
  readAddress();
  draw();
  addEventListener("hashchange", () => { if (location.hash.includes("=")) { readAddress(); draw(); } });
  for (const event of ["pointerdown", "scroll"]) {
    addEventListener(event, ({ target }) => { if (!(target instanceof Element && target.closest("#note, .tag"))) hideNote(); }, true);
  }
  let waiting = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => redraws.forEach((redraw) => redraw()));
  });
}

begin();
