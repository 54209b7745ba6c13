// Everything known about one method on one board: matrix, curves, forgetting, routing, cost, origin.

function section(title, ...content) {
  return el("section", {}, el("h3", {}, title), content);
}

function heatCell(value, range, kind = null) {
  const td = el("td", { class: kind }, value.toFixed(1));
  const share = Math.round((90 * Math.max(0, Math.min(1, (value - range[0]) / (range[1] - range[0])))) / 1.2);
  td.style.backgroundColor = `color-mix(in oklab, var(--heat) ${share}%, var(--paper))`;
  return td;
}

function heatMap(rows, sheet, range, unseen, title) {
  const cell = (value) => heatCell(value, range);
  const others = unseen ? pooled(unseen.names) : [];
  return wide(title,
    el("table", { class: "heat" },
      el("caption", {}, "row: after learning; column: tested on"),
      el("thead", {}, el("tr", {}, el("td"), [...sheet.domains.slice(0, rows.length), ...others.map((name) => `unseen: ${name}`)]
        .map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map((row, t) => el("tr", {}, el("th", { scope: "row" }, sheet.domains[t]), row.map(cell),
        Array.from({ length: rows.length - row.length }, () => el("td")),
        unseen ? unseen.rows[t].map(cell) : null)))));
}

function forgetting(rows, sheet) {
  return wide("forgetting", plainTable(["domain", "when learned", "at the end", "change"], rows.map((row, i) => {
    const values = curveOf(rows, i).map(([, value]) => value);
    const change = values.at(-1) - values[0];
    return [sheet.domains[i], [two(values[0]), "number"], [two(values.at(-1)), "number"],
      [values.length > 1 ? signed(change) : ABSENT, "number"]];
  }), { class: "plain" }));
}

function scoreTable(cell, runs, whole, power) {
  const heads = ["score", "mean", "± std", "95 % interval", "place"];
  const rows = data.metrics.map((name, i) => {
    const [average, std, low, high, place] = cell.scores[i];
    return [name, [two(average), "number"], [two(std), "number"],
      [low === undefined || low === null ? ABSENT : `${two(low)} to ${two(high)}`, "number"], PLACES[place] || ABSENT];
  });
  const covers = cell.scores[0][5];
  const note = seedCount(cell) === 1
    ? "One seed: the interval covers the choice of test images only; how much the draw of the images and training matter is not known."
    : covers ? `The intervals cover ${covers}.` : "Without per-sample predictions there are no intervals.";
  return [wide("scores", plainTable(heads, rows, { class: "plain" })), power && el("p", {}, `${data.metrics[0]}: ${power}`), el("p", { class: "quiet" }, whole ? note : `These are over all seeds; the rest is of seed ${runs[0].seed}. ${note}`)];
}

function costPart(cell, runs, sheet) {
  const spent = pooled(runs[0].cost);
  const took = field(runs, "seconds");
  const size = sheet.domains.length;
  const audit = { images: "By size alone, the state could hold the training images.", features: "By size alone, the state could hold frozen features of the training images." };
  return section("Cost",
    wide("cost", plainTable(["domain", "learn", "predict", "trained", "state"], sheet.domains.map((name, t) => [name,
      [seconds(took[t]), "number"], [seconds(took[size + t]), "number"],
      [short(spent["trained parameters"][t]), "number"], [bytes(spent["state bytes"][t]), "number"]]), { class: "plain" })),
    el("p", { class: "quiet" }, COSTS.map((cost, i) => `${cost.name} ${cost.format(cell.cost[i])}`).join(" · ")),
    cell.audit && el("p", {}, audit[cell.audit]));
}

function flatten(value, prefix = "") {
  if (value === null || typeof value !== "object") return [[prefix, value === "" ? ABSENT : shown(value)]];
  if (Array.isArray(value)) return [[prefix, value.map(shown).join(", ") || ABSENT]];
  return Object.entries(value).flatMap(([key, each]) => flatten(each, prefix ? `${prefix} · ${key}` : key));
}

const definitions = (pairs) => el("dl", {}, pairs.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));

function originPart(row, runs) {
  const pairs = runs.map((run) => [`seed ${run.seed}`, `run ${run.id}, samples ${run.samples}, ${run.time}${run.sealed ? ", sealed" : ""}`]);
  const machines = [...new Set(runs.map((run) => run.made))].map((made) => {
    const own = runs.filter((run) => run.made === made);
    return [el("p", { class: "quiet" }, own.length < runs.length && `seed ${own.map((run) => run.seed).join(", ")}:`), definitions(flatten(pooled(made)))];
  });
  return [
    section("Provenance", definitions([...pairs, ...flatten(pooled(row.code), "code")]), machines),
    section("Options", definitions(flatten(pooled(row.config)))),
  ];
}

function commandPart(command) {
  const code = el("code", {}, command);
  const button = el("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(command);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
  } }, "Copy");
  const part = section("To reproduce", el("div", { class: "command" }, code, button));
  part.classList.add("whole");
  return part;
}

function unfinishedPart(cell) {
  if (!cell.unfinished) return null;
  return section("Without a result", wide("without a result", plainTable(["seed", "state", "error"],
    cell.unfinished.map(([, , seed, state, failure]) => [String(seed), [state, state], failure || ABSENT]), { class: "plain" })));
}

function detailParts(sheet, row, shots, seed) {
  const cell = row.cells[shots];
  if (!cell || !cell.runs) return [cell ? unfinishedPart(cell) : el("p", {}, "Not run.")];
  const whole = seed === "mean";
  const runs = whole ? cell.runs : cell.runs.filter((run) => String(run.seed) === seed);
  const rows = rowsOf(field(runs, "matrix"));
  const range = rangeOf(rows.flat());
  const width = Math.max(260, Math.min(480, byId("details").clientWidth - 44));
  const lines = rows.map((_, i) => ({ name: sheet.domains[i], points: curveOf(rows, i) }));
  return [
    section("Scores", scoreTable(cell, runs, whole, smallestText(sheet, shots, 0))), evidencePart(row, shots),
    section("Accuracy on every domain seen (%)", heatMap(rows, sheet, range, runs[0].unseen, "Accuracy matrix")),
    section("Each domain over the stream", lineChart(lines, sheet.domains, range, width, `accuracy of ${row.label} on each domain over the stream`)),
    section("Forgetting", forgetting(rows, sheet)),
    routingPart(runs, sheet), costPart(cell, runs, sheet), unfinishedPart(cell),
    commandPart(cell.command), ...originPart(row, runs),
  ];
}

function openDetails(sheet, row, shots) {
  const dialog = byId("details");
  const state = { shots, seed: "mean" };
  dialog.shown = { sheet, row, state };
  const body = el("div", { class: "parts" });
  const controls = el("div", { class: "controls" });
  const draw = () => {
    const cell = row.cells[state.shots];
    const runs = (cell && cell.runs) || [];
    const ran = sheet.shots.filter((k) => row.cells[k]);
    controls.replaceChildren(
      choice("Shots", "detail-shots", ran.map((k) => [k, `${k}-shot`]), state.shots, (k) => { state.shots = k; state.seed = "mean"; draw(); }),
      runs.length > 1 ? select("seeds", [["mean", `mean of ${runs.length}`], ...runs.map((run) => [run.seed, `seed ${run.seed}`])],
        state.seed, (seed) => { state.seed = seed; draw(); }) : `seed ${runs.length ? runs[0].seed : ABSENT}`);
    body.replaceChildren(...detailParts(sheet, row, state.shots, state.seed).filter(Boolean));
    const chosen = controls.querySelector("input:checked");
    if (dialog.open && chosen && !dialog.contains(document.activeElement)) chosen.focus();
  };
  dialog.replaceChildren(el("div", { class: "inside" },
    el("header", {},
      el("div", {}, el("h2", { id: "details-title" }, row.label),
        el("p", { class: "quiet" }, [row.summary, row.paper].filter(Boolean).join(" · ")),
        el("p", { class: "quiet" }, `${sheet.title}, ${sheet.backbone}, ${sheet.precision}`)),
      el("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    controls, body));
  dialog.showModal();
  if (!row.cells[state.shots]) state.shots = sheet.shots.find((k) => row.cells[k]);
  draw();
  dialog.scrollTop = 0;
}
