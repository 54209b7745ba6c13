// What a board can tell: who may be best, and how small a difference it could have seen.

const points = (value) => `${value.toFixed(value < 1 ? 2 : 1)} points`;

function listed(names) {
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
}

function smallestText(sheet, shots, metric) {
  const smallest = (sheet.smallest_difference[sheet.shots.indexOf(shots)] || {})[data.metrics[metric]];
  return smallest === null || smallest === undefined ? "" : `This board could have seen a difference of ${points(smallest)}.`;
}

function standingText(sheet, shots, metric) {
  const at = (place) => sheet.rows.filter((row) => row.cells[shots] && row.cells[shots].scores[metric][4] === place).map((row) => row.label);
  const [best] = at("best");
  if (best === undefined) return "";
  const [tied, undecided] = [at("tied"), at("undecided")];
  const are = (names, text) => names.length > 0 && `${listed(names)} ${names.length > 1 ? "are" : "is"} ${text}.`;
  return [
    tied.length || undecided.length ? `${best} has the best mean.` : `${best} is best; all others that compete are worse.`,
    are(tied, "not distinguishable from it"), are(undecided, "undecided"), smallestText(sheet, shots, metric),
  ].filter(Boolean).join(" ");
}

function standingList(sheet, shots, columns) {
  const [{ score }] = columns;
  const lines = score === undefined ? [] : shots.map((k) => [k, standingText(sheet, k, score)]).filter(([, text]) => text);
  if (!lines.length) return null;
  return el("ul", { class: "standing", "aria-label": `who is best by ${data.metrics[score]}` },
    lines.map(([k, text]) => el("li", {}, el("b", {}, `${k}-shot, ${data.metrics[score]}: `), text)));
}
