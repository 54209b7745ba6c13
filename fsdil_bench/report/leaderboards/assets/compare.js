// Chosen methods of one sheet side by side: scores, the stream as a whole, domain by domain, and two
// of them image by image.

function differenceTable(sheet, rows, shots) {
  const [first, ...others] = rows;
  const heads = ["method", ...shots.flatMap((k) => [0, 1].map((i) => `${data.metrics[i]} ${k}-shot`))];
  const values = (row) => shots.flatMap((k) => [0, 1].map((i) => (row.cells[k] || VOID).scores[i][0]));
  const base = values(first);
  const lines = [[first.label, ...base.map((value) => [two(value), "number"])],
    ...others.map((row) => [row.label, ...values(row).map((value, i) => [
      value === null || base[i] === null ? two(value) : `${two(value)} (${signed(value - base[i])})`, "number"])])];
  return wide("scores of the chosen methods",
    plainTable(heads, lines, { class: "plain" }, `in brackets: difference to ${first.label}`));
}

function compareCharts(sheet, rows, shots, width) {
  const ran = rows.filter((row) => row.cells[shots] && row.cells[shots].runs);
  if (!ran.length) return [el("p", { class: "empty" }, "None of them ran with so many shots.")];
  const matrices = ran.map((row) => rowsOf(field(row.cells[shots].runs, "matrix")));
  const range = rangeOf(matrices.flat(2));
  const averages = ran.map((row, i) => ({ name: row.label, points: averageCurve(matrices[i]) }));
  const figure = (title, chart) => el("figure", {}, el("figcaption", {}, title), chart);
  return [
    figure("Mean accuracy on the domains seen so far", lineChart(averages, sheet.domains, rangeOf(averages.flatMap((line) => line.points.map((p) => p[1]))), Math.min(width, 760), "mean accuracy over the stream, one line per method")),
    el("div", { class: "multiples" }, ran.map((row, m) => figure(`${row.label}: each domain`,
      lineChart(matrices[m].map((_, i) => ({ name: sheet.domains[i], points: curveOf(matrices[m], i) })), sheet.domains, range,
        Math.min(width, Math.max(300, Math.min(420, width / 2 - 20))), `accuracy of ${row.label} on each domain over the stream`)))),
  ];
}

function comparePanel(sheet, shots, view) {
  const state = view.compare;
  if (!shots.includes(state.shots)) [state.shots] = shots;
  const rows = sheet.rows.filter((row) => view.picked.has(row.label));
  const place = el("div");
  const draw = () => {
    if (rows.length < 2) {
      place.replaceChildren(el("p", { class: "quiet" }, "Tick two or more methods in the table."));
      return;
    }
    place.replaceChildren(
      el("div", { class: "controls" }, select("curves with", shots.map((k) => [k, `${k}-shot`]), state.shots, (k) => { state.shots = Number(k); draw(); }),
        el("button", { type: "button", onclick: () => view.clear() }, "Clear the choice")),
      differenceTable(sheet, rows, shots), ...compareCharts(sheet, rows, state.shots, Math.max(300, place.clientWidth || 300)),
      flipsPart(sheet, rows, state.shots, state));
  };
  const panel = el("details", { class: "panel compare", open: state.open, ontoggle: () => { state.open = panel.open; if (panel.open) draw(); } },
    el("summary", {}, rows.length ? `Compare methods (${rows.length} chosen)` : "Compare methods"), place);
  panel.redraw = () => { if (panel.open) draw(); };
  return panel;
}
