// The boards (see page_data.py), numbers as text, and what is computed from runs.

const data = JSON.parse(byId("data").textContent);
const ABSENT = "–";
const PLACES = { best: "best mean", tied: "not distinguishable from the best", undecided: "undecided", behind: "worse than the best" };

const two = (value) => (value === null || value === undefined ? ABSENT : value.toFixed(2));
const signed = (value) => (value === null || value === undefined ? ABSENT : (value > 0 ? "+" : "") + value.toFixed(2));
const short = (value) => {
  if (value === null || value === undefined) return ABSENT;
  const units = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [size, unit] = units.find(([limit]) => Math.abs(value) >= limit) || [1, ""];
  const number = value / size;
  return (Number.isInteger(number) || number >= 100 ? number.toFixed(0) : number.toPrecision(number >= 1 ? 3 : 2)) + unit;
};
const seconds = (value) => (value >= 100 ? `${Math.round(value)} s` : `${Number(value.toPrecision(2))} s`);
const perImage = (value) => (value && value < 1e-3 ? `${Number((1e6 * value).toPrecision(2))} µs` : value < 1 ? `${Number((1e3 * value).toPrecision(2))} ms` : seconds(value));
const bytes = (value) => {
  if (value < 1024) return `${value} B`;
  const [size, unit] = value < 2 ** 20 ? [1024, "KB"] : value < 2 ** 30 ? [2 ** 20, "MB"] : [2 ** 30, "GB"];
  return `${Number((value / size).toPrecision(3))} ${unit}`;
};
const shown = (value) => (value === null ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value));
const testImages = (sheet) => sheet.tests.reduce((sum, count) => sum + count, 0);

// The costs of a cell, in the order of its `cost`.
const COSTS = [
  { name: "learning time", unit: "seconds", format: seconds },
  { name: "learning an image", unit: "seconds per training image", format: perImage },
  { name: "predicting an image", unit: "seconds per image", format: perImage },
  { name: "trained parameters", unit: "parameters", format: short },
  { name: "state", unit: "bytes", format: bytes },
  { name: "peak memory", unit: "bytes", format: bytes },
];

// What a table's columns may show, for each number of shots.
const scoreColumn = (i) => ({ name: data.metrics[i], score: i, value: (cell) => cell.scores[i][0] });
const costColumn = (i) => ({ name: COSTS[i].name, format: COSTS[i].format, value: (cell) => (cell.cost ? cell.cost[i] : null) });
const COLUMNS = {
  "AA* and FA*": [0, 1].map(scoreColumn),
  "Avg and Last": [2, 3].map(scoreColumn),
  ...Object.fromEntries(data.metrics.map((name, i) => [`${name} only`, [scoreColumn(i)]])),
  "time per image": [1, 2].map(costColumn),
  "parameters and state": [3, 4].map(costColumn),
};

const pooled = (position) => data.pool[position];
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const meanOf = (lists) => (lists.length ? lists[0].map((_, i) => mean(lists.map((list) => list[i]))) : null);

// The mean of one field (a list of numbers) over runs that have it.
const field = (runs, name) => meanOf(runs.map((run) => run[name]).filter(Boolean));

// The triangle of A[t, i] as rows.
function rowsOf(triangle) {
  const rows = [];
  for (let t = 0, at = 0; at < triangle.length; t += 1, at += t) rows.push(triangle.slice(at, at + t + 1));
  return rows;
}

// A domain's accuracies from when it was learned on, as points [step, accuracy].
const curveOf = (rows, i) => rows.slice(i).map((row, step) => [i + step, row[i]]);

// Mean accuracy on the domains seen so far, after each domain.
const averageCurve = (rows) => rows.map((row, t) => [t, mean(row)]);

const haystack = (row) => [row.label, row.summary, row.paper, JSON.stringify(pooled(row.config))].join(" ").toLowerCase();
const sealedCell = (cell) => Boolean(cell.runs) && cell.runs.every((run) => run.sealed);
