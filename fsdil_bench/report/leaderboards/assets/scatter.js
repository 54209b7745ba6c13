// Accuracy against cost: what a better score takes. A cost of nothing stands left of the axis.

function costScale(values, left, right) {
  const positive = values.filter((value) => value > 0);
  const zero = values.some((value) => !(value > 0));
  const low = positive.length ? Math.log10(Math.min(...positive)) : 0;
  const high = positive.length ? Math.log10(Math.max(...positive)) : 1;
  const margin = Math.max(0.08 * (high - low), 0.15);
  const start = left + (zero ? 46 : 0);
  const at = (value) => start + ((right - start) * (Math.log10(value) - low + margin)) / (high - low + 2 * margin);
  const ticks = [];
  const every = Math.max(1, Math.ceil((high - low) / 7));
  for (let power = Math.ceil(low - margin); power <= high + margin; power += every) ticks.push(10 ** power);
  if (ticks.length < 2) ticks.splice(0, ticks.length, ...[...new Set([10 ** low, 10 ** high])]);
  return { ticks, zero, x: (value) => (value > 0 ? at(value) : left + 16), zeroAt: left + 16 };
}

// Points that no other beats in both; at the same cost only the best stays.
function frontier(points) {
  const order = [...points].sort((a, b) => a.cost - b.cost || b.score - a.score);
  const kept = [];
  for (const point of order) if (!kept.length || point.score > kept.at(-1).score) kept.push(point);
  return kept;
}

// A place for each label where it touches neither a point nor another label, or none.
function placeLabels(points, width) {
  const taken = points.map((point) => [point.x - 6, point.y - 6, point.x + 6, point.y + 6]);
  const free = (box) => box[0] > 0 && box[2] < width && box[1] > 0 &&
    taken.every((other) => box[2] < other[0] || box[0] > other[2] || box[3] < other[1] || box[1] > other[3]);
  for (const point of points) {
    const size = 6.4 * point.row.label.length + 4;
    const near = [[9, -7], [-9 - size, -7], [-size / 2, -21], [-size / 2, 8]];
    const far = (width < 500 ? [] : [26, 44, 62]).flatMap((step) => [[14, step - 7], [14, -step - 7], [-14 - size, step - 7], [-14 - size, -step - 7]]);
    const spot = [...near, ...far].find(([dx, dy]) => free([point.x + dx, point.y + dy, point.x + dx + size, point.y + dy + 14]));
    if (!spot) continue;
    const [left, top] = [point.x + spot[0], point.y + spot[1]];
    point.label = [left, top + 11];
    if (far.includes(spot)) point.leader = [spot[0] > 0 ? left - 2 : left + size - 2, top + 7];
    taken.push([left, top, left + size, top + 14]);
  }
}

function scatterChart(sheet, rows, state, width) {
  const cost = COSTS[state.cost];
  const points = rows.map((row) => ({ row, cell: row.cells[state.shots] }))
    .filter(({ cell }) => cell && cell.cost && cell.scores[state.metric][0] !== null)
    .map(({ row, cell }) => ({ row, cost: cell.cost[state.cost], score: cell.scores[state.metric][0] }));
  if (!points.length) return el("p", { class: "empty" }, "No results to draw.");
  const height = Math.min(460, Math.max(300, width * 0.5));
  const area = { left: 40, right: width - 14, top: 26, bottom: height - 46 };
  const scores = points.map((point) => point.score);
  const [low, high] = [Math.floor(Math.min(...scores) - 1), Math.ceil(Math.max(...scores) + 1)];
  const y = (value) => area.bottom - ((area.bottom - area.top) * (value - low)) / (high - low);
  const scale = costScale(points.map((point) => point.cost), area.left, area.right);
  for (const point of points) { point.x = scale.x(point.cost); point.y = y(point.score); }
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group",
    "aria-label": `${data.metrics[state.metric]} against ${cost.name}` });
  for (const tick of niceTicks(low, high, 7)) {
    chart.append(svg("line", { class: "grid", x1: area.left, x2: area.right, y1: y(tick), y2: y(tick) }),
      svg("text", { class: "tick", x: area.left - 6, y: y(tick) + 4, "text-anchor": "end" }, String(tick)));
  }
  const xTicks = [...scale.ticks.map((tick) => [scale.x(tick), cost.format(tick)]), ...(scale.zero ? [[scale.zeroAt, "none"]] : [])];
  for (const [x, text] of xTicks) {
    chart.append(svg("line", { class: "grid", x1: x, x2: x, y1: area.top, y2: area.bottom }),
      svg("text", { class: "tick", x, y: area.bottom + 17, "text-anchor": "middle" }, text));
  }
  chart.append(
    svg("text", { class: "tick", x: area.left - 34, y: 11 }, `${data.metrics[state.metric]} (%)`),
    svg("text", { class: "tick", x: (area.left + area.right) / 2, y: height - 6, "text-anchor": "middle" },
      `${cost.name}, ${cost.unit} (less is better)`));
  const best = frontier(points.filter((point) => point.row.free));
  if (best.length > 1) {
    chart.append(svg("path", { class: "frontier", d: best.map((point, k) => (k ? `H${point.x}V${point.y}` : `M${point.x} ${point.y}`)).join("") }));
  }
  placeLabels([...best, ...points.filter((point) => !best.includes(point))], width);
  for (const point of points) {
    const leads = best.includes(point);
    const open = () => openDetails(sheet, point.row, state.shots);
    const text = `${point.row.label}: ${data.metrics[state.metric]} ${two(point.score)}, ${cost.name} ${cost.format(point.cost)}${leads ? ", nothing cheaper is better" : ""}`;
    chart.append(svg("g", { class: "point", tabindex: 0, role: "button", "aria-label": text, onclick: open,
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } } },
      svg("title", {}, text),
      svg("circle", { class: "ring", cx: point.x, cy: point.y, r: 11 }),
      point.row.free
        ? svg("circle", { class: "dot", cx: point.x, cy: point.y, r: 5.5, fill: leads ? "var(--s1)" : "var(--s0)" })
        : svg("rect", { class: "dot", x: point.x - 5, y: point.y - 5, width: 10, height: 10, fill: "var(--paper)", stroke: "var(--s7)", "stroke-width": 2 }),
      point.leader && svg("line", { class: "leader", x1: point.x, y1: point.y, x2: point.leader[0], y2: point.leader[1] }),
      point.label && svg("text", { x: point.label[0], y: point.label[1] }, point.row.label)));
  }
  return chart;
}

function scatterPanel(sheet, rows, shots, state) {
  const place = el("div");
  const draw = () => place.replaceChildren(scatterChart(sheet, rows, state, Math.max(300, place.clientWidth || 300)));
  const choose = (name) => (value) => { state[name] = Number(value); draw(); };
  if (!shots.includes(state.shots)) [state.shots] = shots;
  const panel = el("details", { class: "panel", open: state.open, ontoggle: () => { state.open = panel.open; if (panel.open) draw(); } },
    el("summary", {}, "Accuracy against cost"),
    el("div", { class: "controls" },
      select("score", data.metrics.map((name, i) => [i, name]), state.metric, choose("metric")),
      select("cost", COSTS.map((cost, i) => [i, cost.name]), state.cost, choose("cost")),
      select("shots", shots.map((k) => [k, `${k}-shot`]), state.shots, choose("shots"))),
    place,
    el("ul", { class: "legend" },
      el("li", {}, svgKey("var(--s1)"), "nothing that costs less is better"), el("li", {}, svgKey("var(--s0)"), "others"),
      rows.some((row) => !row.free) && el("li", {}, "square: keeps old images")));
  panel.redraw = () => { if (panel.open) draw(); };
  return panel;
}

const svgKey = (fill) => el("span", { class: "key" }, svg("svg", { width: 10, height: 10, "aria-hidden": "true" }, svg("circle", { cx: 5, cy: 5, r: 5, fill })));
