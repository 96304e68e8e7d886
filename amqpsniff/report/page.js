// What makes the page alive: charts, themes, tables that sort and filter, conversations.
// Texts are put into the page as text, never as HTML.
const DATA = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

// Themes: the system's until somebody chooses.

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
}

function remembered(theme) {
  try {
    if (theme) localStorage.setItem("amqpsniff-theme", theme);
    return localStorage.getItem("amqpsniff-theme");
  } catch {
    return null; // a page on a disk may have no storage
  }
}

function setUpTheme() {
  const button = document.getElementById("theme");
  const known = remembered();
  if (known === "dark" || known === "light") root.dataset.theme = known;
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to ${isDark() ? "light" : "dark"} colours`);
    drawCharts();
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered(root.dataset.theme);
    show();
  });
  prefersDark.addEventListener("change", show);
  show();
}

// Charts: drawn again when the colours change.

const LIGHT = ["#1d5fa8", "#d9730d", "#2f8f4e", "#b3261e", "#7a4fb5", "#00838f", "#8a6d00"];
const DARK = ["#6aa9f0", "#f0a04b", "#6fcf8e", "#ff8a80", "#bd9cf0", "#4dd0e1", "#e6c84f"];

function chartConfig() {
  const style = getComputedStyle(root);
  const colour = (name) => style.getPropertyValue(name).trim();
  const range = isDark() ? DARK : LIGHT;
  const [text, soft, line] = ["--text", "--soft", "--grid"].map(colour);
  return {
    background: null,
    font: "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
    range: { category: range },
    mark: { color: range[0] },
    bar: { color: range[0] },
    line: { color: range[0], strokeWidth: 1.6 },
    point: { color: range[0] },
    axis: { labelFontSize: 11, titleFontSize: 11, labelSeparation: 6, labelColor: soft, titleColor: soft, gridColor: line, domainColor: soft,
      tickColor: soft, labelLimit: 220, titleFontWeight: "normal", labelOverlap: true },
    legend: { labelColor: text, titleColor: soft, labelFontSize: 12 },
    title: { anchor: "start", fontSize: 14, color: text, frame: "group" },
    view: { stroke: null },
  };
}

let drawing = 0;
const views = new Map();

async function drawCharts() {
  const now = ++drawing;
  const config = chartConfig();
  for (const place of document.querySelectorAll("[data-chart]")) {
    if (now !== drawing) return; // the colours changed meanwhile
    const spec = structuredClone(DATA.charts[Number(place.dataset.chart)]);
    const narrow = place.clientWidth < 480;
    if (narrow) fitNarrow(spec);
    try {
      views.get(place)?.finalize();
      views.set(place, await vegaEmbed(place, spec, {
        config, actions: false, logLevel: 1, renderer: "svg", ast: true, defaultStyle: false,
        tooltip: { theme: isDark() ? "dark" : "light" },
      }));
    } catch (error) {
      place.classList.add("failed");
      place.textContent = `This chart could not be drawn: ${error.message}`;
    }
  }
  root.dataset.drawn = isDark() ? "dark" : "light";
}

// On a phone: only the address beside bars, long legends in two columns or one.
function fitNarrow(spec) {
  const encoding = spec.encoding ?? {};
  if (encoding.y?.type === "nominal") {
    const address = "slice(datum.label, lastindexof(datum.label, ' ') + 1)";
    encoding.y.axis = { ...encoding.y.axis, labelLimit: 150, labelExpr: address };
  }
  for (const channel of ["color", "stroke", "shape"]) {
    const { legend, scale } = encoding[channel] ?? {};
    const longest = Math.max(0, ...(scale?.domain ?? []).map((name) => name.length));
    if (legend?.columns && longest > 8) legend.columns = longest > 16 ? 1 : 2;
  }
}

// Tables.

function sortKey(cell, byNumber) {
  if (!byNumber) return cell.textContent.toLowerCase();
  return cell.dataset.v === undefined ? -Infinity : Number(cell.dataset.v);
}

function sortBy(table, header) {
  const at = header.cellIndex;
  const byNumber = header.classList.contains("number");
  const before = header.getAttribute("aria-sort");
  const first = byNumber ? "descending" : "ascending";
  const second = byNumber ? "ascending" : "descending";
  const order = before === first ? second : first;
  for (const one of header.parentElement.cells) one.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [sortKey(row.cells[at], byNumber), row]);
  keyed.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
  body.append(...keyed.map(([, row]) => row));
}

function filterBy(block, words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = block.querySelector("table").tBodies[0].rows;
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !wanted.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  block.querySelector("output").textContent = wanted.length ? `${shown} of ${rows.length}` : "";
}

function setUpTables() {
  for (const block of document.querySelectorAll(".sortable")) {
    const table = block.querySelector("table");
    for (const header of table.tHead.rows[0].cells) {
      header.querySelector("button").addEventListener("click", () => sortBy(table, header));
    }
    const field = block.querySelector(".filter");
    field?.addEventListener("input", () => filterBy(block, field.value));
  }
}

// Findings: lines that are searched, and lead to the details.

function showFinding() {
  const found = location.hash.startsWith("#finding-") && document.querySelector(location.hash);
  if (!found) return;
  for (let one = found; one; one = one.parentElement.closest("details")) one.open = true;
  found.scrollIntoView();
}

// Lines after the first few are folded on a phone, so that charts stand near the top.
const PHONE = matchMedia("(max-width: 640px)"); // as in the style

function isWide(folded) {
  return folded.classList.contains("narrow") && !PHONE.matches;
}

function foldNarrow() {
  for (const one of document.querySelectorAll(".narrow")) one.open = isWide(one);
}

function findFindings(words, severities) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const lines = [...document.querySelectorAll("li.line")];
  let shown = 0;
  for (const line of lines) {
    const link = line.querySelector("a");
    const detail = link && document.querySelector(link.hash);
    const text = `${line.textContent} ${detail?.textContent ?? ""}`.toLowerCase();
    const severe = !severities || severities.split(" ").includes(line.dataset.severity);
    line.hidden = !severe || !wanted.every((word) => text.includes(word));
    shown += !line.hidden;
  }
  const chosen = Boolean(wanted.length || severities);
  for (const one of document.querySelectorAll("#verdict .folded")) {
    one.open = chosen ? one.querySelector("li.line:not([hidden])") !== null : isWide(one);
  }
  document.querySelector(".find output").textContent = chosen ? `${shown} of ${lines.length}` : "";
}

function setUpFindings() {
  foldNarrow();
  PHONE.addEventListener("change", foldNarrow);
  addEventListener("hashchange", showFinding);
  for (const link of document.querySelectorAll("li.line a")) {
    link.addEventListener("click", () => setTimeout(showFinding)); // the same one once more
  }
  const field = document.getElementById("find");
  const choice = document.getElementById("severity");
  const find = () => findFindings(field.value, choice.value);
  field?.addEventListener("input", find);
  choice?.addEventListener("input", find);
  showFinding();
}

// Conversations.

function eventItem([when, packet, side, channel, method, detail, outcome, level]) {
  const item = make("li", side === "client" || side === "server" ? side : `note ${level}`);
  const time = make("span", "when", when);
  if (packet) time.append(make("br"), `#${packet}`);
  const lane = make("span", "lane");
  if (side === "client" || side === "server") {
    lane.append(side === "client" ? "→ " : "← ");
  }
  if (method) lane.append(make("b", level, method));
  if (detail) lane.append(" ", detail);
  if (outcome) lane.append(" ", make("span", `outcome ${level}`, outcome));
  if (channel) lane.append(" ", make("span", "channel", `ch ${channel}`));
  item.append(time, lane);
  return item;
}

function showConversation(name) {
  const found = DATA.conversations.find((one) => one.id === name);
  if (!found) return;
  document.getElementById("conversation").value = name;
  document.getElementById("about-conversation").textContent = found.about;
  const peers = document.getElementById("peers");
  peers.replaceChildren(make("span", "", found.client), make("span", "", found.server));
  document.getElementById("events").replaceChildren(...found.events.map(eventItem));
  document.getElementById("lifelines").scrollTop = 0;
}

function setUpConversations() {
  const choice = document.getElementById("conversation");
  if (!choice) return;
  choice.addEventListener("change", () => showConversation(choice.value));
  for (const link of document.querySelectorAll("[data-conversation]")) {
    link.addEventListener("click", () => showConversation(link.dataset.conversation));
  }
  showConversation(choice.value);
}

// On paper nothing unfolds: findings are printed open.

function setUpPaper() {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });
}

setUpPaper();
setUpTables();
setUpConversations();
setUpFindings();
setUpTheme();
