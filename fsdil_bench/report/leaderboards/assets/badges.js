// Badges: how far a row can be believed. Each is a button that says more, by mouse, keys and touch.

const VERDICTS = { identical: "the same predictions", close: "almost the same scores", differs: "a different result" };

// One sentence for each group of boards that share it: "1-shot, 2-shot: ..."
function byBoard(cells, sentence) {
  const groups = new Map();
  for (const [shots, cell] of cells) {
    const text = sentence(cell);
    if (text) groups.set(text, [...(groups.get(text) || []), `${shots}-shot`]);
  }
  return [...groups].map(([text, boards]) => `${boards.join(", ")}: ${text}`);
}

function verdictText(cell) {
  if (!cell.verified) return "";
  const [outcome, who, when, version] = cell.verified;
  return `run again by ${who} on ${when} with fsdil-bench ${version}: ${VERDICTS[outcome] || outcome}.`;
}

// What is known about a row on some boards: { text, kind, lines }.
function badgesOf(row, shots) {
  const cells = shots.map((k) => [k, row.cells[k]]).filter(([, cell]) => cell && cell.runs);
  const having = (test) => cells.filter(([, cell]) => test(cell));
  const share = (some) => (some.length < cells.length ? "partly " : "");
  const badges = [];
  const add = (text, kind, ...lines) => badges.push({ text, kind, lines: lines.flat() });
  if (!row.free) add("keeps images", "", "It keeps images of earlier domains: a ceiling, not a competitor.");
  if (row.features) add("keeps features", "", "Its state can hold the frozen feature of a single training image.");
  const sealed = having(sealedCell);
  const open = byBoard(having((cell) => !sealedCell(cell)), () => "not sealed: while it ran, the method's code could reach labels and test images.");
  if (sealed.length) {
    add(`${share(sealed)}sealed`, row.third && open.length ? "warn" : "good",
      byBoard(sealed, () => "sealed: learning and predicting ran in separate processes, without labels and test images at hand."), open);
  } else if (row.third && cells.length) add("not sealed", "warn", open, "Such a run of a third-party method is for development: it is shown and does not compete.");
  const verified = having((cell) => cell.verified && cell.verified[0] !== "differs");
  if (verified.length) add(`${share(verified)}verified`, "good", byBoard(verified, verdictText));
  const refuted = having((cell) => cell.verified && cell.verified[0] === "differs");
  if (refuted.length) add("not confirmed", "warn", byBoard(refuted, verdictText));
  const differing = having((cell) => cell.differs);
  if (differing.length) {
    add("differs from its ordinary run", "warn", byBoard(differing, (cell) => ["a sealed run predicted differently from the ordinary run of the same id.", ...cell.differs].join(" ")));
  }
  const suspicious = having((cell) => cell.suspicions);
  if (suspicious.length) add("suspicious", "warn", byBoard(suspicious, (cell) => cell.suspicions.join(" ")));
  return badges;
}

const hideNote = () => { if (byId("note").matches(":popover-open")) byId("note").hidePopover(); };

function showNote(button, lines) {
  const note = byId("note");
  const again = note.source === button && note.matches(":popover-open");
  hideNote();
  if (again) return;
  note.source = button;
  note.replaceChildren(...lines.map((line) => el("p", {}, line)));
  note.showPopover();
  const place = button.getBoundingClientRect();
  const left = Math.max(8, Math.min(place.left, document.documentElement.clientWidth - note.offsetWidth - 8));
  const below = place.bottom + 6 + note.offsetHeight < innerHeight;
  note.style.left = `${left}px`;
  note.style.top = `${Math.max(8, below ? place.bottom + 6 : place.top - 6 - note.offsetHeight)}px`;
}

function badgeButton({ text, kind, lines }) {
  const button = el("button", { type: "button", class: `tag ${kind}`, "aria-describedby": "note", onclick: () => showNote(button, lines), onblur: hideNote,
    onkeydown: (event) => { if (event.key === "Escape") hideNote(); } },
  kind && el("span", { "aria-hidden": "true" }, kind === "good" ? "✓ " : "⚠ "), text);
  return button;
}

// The same in full, for the details of a row on one board.
function evidencePart(row, shots) {
  const badges = badgesOf(row, [shots]);
  if (!badges.length) return null;
  return section("Evidence", definitions(badges.map(({ text, lines }) => [text, lines.map((line) => el("p", {}, line.replace(`${shots}-shot: `, "")))])));
}
