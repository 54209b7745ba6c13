// While runs are made: says what is going on, and loads the page again where the boards changed, with
// all that the reader has sorted, filtered, opened and scrolled to.

const KEPT = "fsdil-bench view"; // in the storage of this tab
const EVERY = 3000; // milliseconds between two questions to the server
const MOST_STARTED = 40;

// --- What is kept over a reload; the filters stand in the address ---

const nameOf = (element) => element.getAttribute("aria-label") || element.dataset.sort || element.textContent.replace(/\d+/g, "");
const sheetOf = (element) => (element.closest(".sheet") || document.body).getAttribute("aria-label") || "";
const allColumns = () => Object.values(COLUMNS).flat();

function keptView(view) {
  const sort = view.sort && { ...view.sort, column: view.sort.column && view.sort.column.name };
  return { sort, picked: [...view.picked], scatter: view.scatter, compare: view.compare };
}

function keptDialog() {
  const dialog = byId("details");
  if (!dialog.open || !dialog.shown) return null;
  const { sheet, row, state } = dialog.shown;
  return { sheet: sheet.name, label: row.label, shots: state.shots, top: dialog.scrollTop,
    choices: [...dialog.querySelectorAll("select")].map((box) => box.value) };
}

function keptFocus() {
  const element = document.activeElement;
  if (!element || element === document.body || element.closest("dialog")) return null;
  return { id: element.id, sheet: sheetOf(element), tag: element.tagName, name: nameOf(element),
    from: element.selectionStart, to: element.selectionEnd };
}

// The table at the upper edge of the window stays where it is, also if there is more above it.
function keptPlace() {
  const places = [...document.querySelectorAll("#boards > .sheet[aria-label]")].map((part) => [part, part.getBoundingClientRect()]);
  const seen = scrollY > 0 && places.find(([, { top, bottom }]) => bottom > 0 && top < innerHeight);
  return seen ? { sheet: sheetOf(seen[0]), top: seen[1].top } : { y: scrollY };
}

function keep() {
  const opened = [...document.querySelectorAll("main details")].map((part) => [sheetOf(part), nameOf(part.querySelector("summary")), part.open]);
  const wides = [...document.querySelectorAll("main .wide")].filter((part) => part.scrollLeft).map((part) => [sheetOf(part), nameOf(part), part.scrollLeft]);
  const kept = { views: data.sheets.map((sheet) => [sheet.name, keptView(views.get(sheet))]), opened, wides,
    dialog: keptDialog(), focus: keptFocus(), place: keptPlace(), known };
  sessionStorage.setItem(KEPT, JSON.stringify(kept));
  history.scrollRestoration = "manual";
}

function restoreViews(kept) {
  const known = new Map(kept);
  for (const sheet of data.sheets) {
    const view = views.get(sheet);
    const old = known.get(sheet.name);
    if (!old) continue;
    Object.assign(view.scatter, old.scatter);
    Object.assign(view.compare, old.compare);
    for (const label of old.picked) if (sheet.rows.some((row) => row.label === label)) view.picked.add(label);
    const column = old.sort && allColumns().find((each) => each.name === old.sort.column);
    if (old.sort && (column || !old.sort.column)) view.sort = { ...old.sort, column };
  }
}

const same = (tag, sheet, name) => [...document.querySelectorAll(`main ${tag}`)].find((part) => sheetOf(part) === sheet && nameOf(part) === name);

function restoreDialog({ sheet, label, shots, top, choices }) {
  const board = data.sheets.find((each) => each.name === sheet);
  const row = board && board.rows.find((each) => each.label === label);
  if (!row || !row.cells[shots]) return;
  openDetails(board, row, shots);
  choices.forEach((value, i) => {
    const box = byId("details").querySelectorAll("select")[i];
    if (!box || box.value === value || ![...box.options].some((option) => option.value === value)) return;
    box.value = value;
    box.dispatchEvent(new Event("change"));
  });
  byId("details").scrollTop = top;
}

function restoreFocus({ id, sheet, tag, name, from, to }) {
  const element = id ? byId(id) : same(tag.toLowerCase(), sheet, name);
  if (!element) return;
  element.focus({ preventScroll: true });
  if (from !== null && from !== undefined) element.setSelectionRange(from, to);
}

function restore() {
  const text = sessionStorage.getItem(KEPT);
  sessionStorage.removeItem(KEPT);
  if (!text) return;
  const kept = JSON.parse(text);
  restoreViews(kept.views);
  draw();
  known = kept.known;
  showState(known);
  for (const [sheet, name, open] of kept.opened) {
    const summary = same("summary", sheet, name);
    if (summary) summary.parentElement.open = open;
  }
  for (const [sheet, name, left] of kept.wides) {
    const part = same(".wide", sheet, name);
    if (part) part.scrollLeft = left;
  }
  const part = kept.place.sheet && same(".sheet", kept.place.sheet, kept.place.sheet);
  scrollTo(0, part ? scrollY + part.getBoundingClientRect().top - kept.place.top : kept.place.y || 0);
  history.scrollRestoration = "auto";
  if (kept.focus) restoreFocus(kept.focus);
  if (kept.dialog) restoreDialog(kept.dialog);
}

// --- What is going on ---

const panel = el("section", { class: "sheet", "aria-label": "what is going on" });
let shownState = "";
let unanswered = false;

const clock = (time) => {
  const date = new Date(1000 * time);
  const today = date.toDateString() === new Date().toDateString();
  return today ? `at ${date.toLocaleTimeString()}` : `on ${date.toLocaleString()}`;
};
const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

function sentences(state) {
  const count = (name) => state.started.filter((run) => run.state === name).length;
  const [running, failed, stopped] = ["running", "failed", "stopped"].map(count);
  const { last } = state;
  return [
    running ? `${plural(running, "run is", "runs are")} at work.` : "No run is at work.",
    failed && `${failed} failed.`, stopped && `${plural(stopped, "was", "were")} stopped before the end.`,
    last ? `${plural(state.runs, "run is", "runs are")} complete, the newest ${clock(last.time)}: ${last.method} on ${last.scenario}, seed ${last.seed}.`
      : !state.making && "No run is complete yet.",
    state.making && "The tables are being made again.",
  ].filter(Boolean).join(" ");
}

function startedTable(runs) {
  if (!runs.length) return null;
  const rows = runs.slice(0, MOST_STARTED).map((run) => [
    `${run.method} on ${run.scenario}, seed ${run.seed}`, [run.state, run.state],
    run.of ? `${run.domains} of ${run.of}` : String(run.domains), run.phase || ABSENT,
    run.changed ? clock(run.changed) : ABSENT, run.error || ABSENT]);
  const open = !runs.some((run) => run.state === "running");
  return el("details", { open: !open }, el("summary", {}, "Runs without a result"),
    wide("runs without a result", plainTable(["run", "state", "domains", "now", "last saved", "error"], rows, { class: "plain" },
      runs.length > MOST_STARTED && `the first ${MOST_STARTED} of ${runs.length}`)));
}

function showState(state) {
  const text = JSON.stringify([state, unanswered]);
  if (text === shownState) return;
  shownState = text;
  const details = panel.querySelector("details");
  const notes = [...state.notes, state.problem && `The tables could not be made again: ${state.problem}`].filter(Boolean);
  panel.replaceChildren(...[
    el("h2", {}, unanswered ? "Not live" : "Live"),
    el("p", { role: "status", class: unanswered ? "failed" : null }, unanswered
      ? "The server does not answer: fsdil-bench view was ended. This is how things stood before." : sentences(state)),
    ...notes.map((note) => el("p", { class: "quiet" }, note)),
    startedTable(state.started),
  ].filter(Boolean));
  const again = panel.querySelector("details");
  if (details && again) again.open = details.open;
}

// --- Asking ---

let known = { version: "", runs: 0, last: null, making: true, started: [], notes: [], problem: "" };
let touched = 0;
let waiting = 0;

// A reader who is typing, scrolling or choosing from a list is not interrupted.
const busy = () => Date.now() - touched < (document.activeElement.tagName === "SELECT" ? 8000 : 1500);

async function ask() {
  clearTimeout(waiting);
  waiting = setTimeout(ask, EVERY);
  if (document.hidden) return;
  try {
    const answer = await fetch("state", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    known = await answer.json();
    unanswered = false;
  } catch {
    unanswered = true;
  }
  showState(known);
  if (!unanswered && known.version !== document.documentElement.dataset.version && !busy()) {
    clearTimeout(waiting);
    keep();
    location.reload();
  }
}

document.querySelector("main").prepend(panel);
for (const event of ["pointerdown", "keydown", "input", "wheel", "touchmove"]) {
  addEventListener(event, () => { touched = Date.now(); }, { capture: true, passive: true });
}
document.addEventListener("visibilitychange", ask);
restore();
showState(known);
ask();
