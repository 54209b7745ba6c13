// For methods that guess the domain: how often they are right, and what they take for what.

// The matrices of `confusion`, by the number of domains that were known.
function confusions(flat, domains) {
  if (flat.length === domains * domains) return [[domains, flat]];
  const found = [];
  for (let size = 1, at = 0; size <= domains; at += size * size, size += 1) found.push([size, flat.slice(at, at + size * size)]);
  return found;
}

function mistakeText(names, size, values) {
  const astray = values.map((value, at) => [value, Math.floor(at / size), at % size]).filter(([, i, j]) => i !== j);
  const [share, i, j] = astray.reduce((a, b) => (b[0] > a[0] ? b : a), [0, 0, 0]);
  return share ? `Most common mistake: ${share.toFixed(1)} % of ${names[i]} are taken for ${names[j]}.` : "No image is sent to a wrong domain.";
}

function confusionTable(names, size, values) {
  return [wide("true and guessed domains", el("table", { class: "heat confusion" },
    el("caption", {}, "row: true domain; column: guessed domain; percent of the row"),
    el("thead", {}, el("tr", {}, el("td"), names.slice(0, size).map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, names.slice(0, size).map((name, i) => el("tr", {}, el("th", { scope: "row" }, name),
      names.slice(0, size).map((_, j) => heatCell(values[i * size + j], [0, 100], i === j ? "own" : null))))))),
  el("p", {}, mistakeText(names, size, values))];
}

function confusionPart(runs, sheet) {
  const flat = field(runs, "confusion");
  if (!flat) return null;
  const steps = confusions(flat, sheet.domains.length).filter(([size]) => size > 1);
  if (!steps.length) return null;
  const place = el("div");
  const draw = (step) => place.replaceChildren(...confusionTable(sheet.domains, ...steps[step]));
  draw(steps.length - 1);
  return [steps.length > 1 && el("div", { class: "controls" }, select("after", steps.map(([size], step) => [step, sheet.domains[size - 1]]), steps.length - 1, draw)), place];
}

function routingPart(runs, sheet) {
  const routing = field(runs, "routing");
  const oracle = field(runs, "oracle");
  if (!routing) return null;
  const plain = rowsOf(field(runs, "matrix"));
  const informed = oracle && rowsOf(oracle);
  return section("Guessing the domain",
    wide("guessing the domain", plainTable(["after", "domain right", "accuracy", "with the true domain"], routing.map((value, t) => [sheet.domains[t],
      [two(value), "number"], [two(mean(plain[t])), "number"], [informed ? two(mean(informed[t])) : ABSENT, "number"]]), { class: "plain" })),
    confusionPart(runs, sheet));
}
