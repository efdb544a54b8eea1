R"js(// Sorting, filtering, hovering and the theme. The page is complete without it.
"use strict";
const root = document.documentElement;
window.addEventListener("error", (event) => { root.dataset.error = event.message; });
const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

// ---- Theme: the system's, or the one chosen with the button ----
const memory = {  // files opened from a disk may have no storage
  get() { try { return localStorage.getItem("tessera-theme"); } catch (error) { return null; } },
  set(theme) { try { localStorage.setItem("tessera-theme", theme); } catch (error) { /* chosen for this visit only */ } },
};
const chosen = location.hash === "#dark" || location.hash === "#light" ? location.hash.slice(1) : memory.get();
if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
document.getElementById("theme").addEventListener("click", () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  memory.set(root.dataset.theme);
});

// ---- The run table ----
const table = document.getElementById("runs_table");
const body = table.tBodies[0];
const rows = Array.from(body.rows);
rows.forEach((row, place) => { row.dataset.place = place; });

function sortKey(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
  const text = cell.textContent.trim();
  return text === "-" ? null : text.toLowerCase();
}

// Missing values stay last in both directions; equal ones keep the page's order.
function sortBy(column, isDescending) {
  const keys = new Map(rows.map((row) => [row, sortKey(row, column)]));
  rows.sort((a, b) => {
    const x = keys.get(a), y = keys.get(b);
    if (x === null || y === null) return (x === null) - (y === null) || a.dataset.place - b.dataset.place;
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
    return (isDescending ? -order : order) || a.dataset.place - b.dataset.place;
  });
  body.append(...rows);
}

all("thead th", table).forEach((head, column) => {
  head.querySelector("button").addEventListener("click", () => {
    const direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    all("thead th", table).forEach((each) => each.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", direction);
    sortBy(column, direction === "descending");
  });
});

const filter = document.getElementById("filter");
const status = document.getElementById("status");
function applyFilter() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = (status.value !== "" && row.dataset.state !== status.value) || !words.every((word) => text.includes(word));
    if (!row.hidden) ++shown;
  }
  document.getElementById("shown").textContent = `${shown} of ${rows.length} runs`;
}
filter.addEventListener("input", applyFilter);
status.addEventListener("change", applyFilter);

// ---- Links to a run open its section ----
function openTarget() {
  const id = location.hash.slice(1);
  const target = id.startsWith("run-") ? document.getElementById(id) : null;
  if (target) { target.open = true; target.scrollIntoView(); }
}
window.addEventListener("hashchange", openTarget);
openTarget();

// ---- Values under the pointer ----
// A line plot says where its axes are: data-a = left top width height, data-x and data-y = low high per_unit is_log.
const plots = new WeakMap();
const numbers = (text) => text.trim().split(/[\s,]+/).map(Number);

function readPlot(svg) {
  if (plots.has(svg)) return plots.get(svg);
  const lines = all("g[data-name]", svg).map((group) => {
    const flat = numbers(group.dataset.v ?? all("polyline", group).map((line) => line.getAttribute("points")).join(" "));
    const points = [];
    for (let i = 0; i + 1 < flat.length; i += 2) points.push([flat[i], flat[i + 1]]);
    return { name: group.dataset.name, points, isFaint: group.classList.contains("faint") };
  });
  const plot = { lines, area: numbers(svg.dataset.a), x: numbers(svg.dataset.x), y: numbers(svg.dataset.y) };
  plots.set(svg, plot);
  return plot;
}
function share(axis, value) {  // 0 at the axis' begin, 1 at its end
  const [low, high, , isLog] = axis;
  return isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
}
function valueAt(axis, place) {
  const [low, high, , isLog] = axis;
  return isLog ? low * Math.pow(high / low, place) : low + place * (high - low);
}
function nearest(points, x) {
  let low = 0, high = points.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < x) low = middle; else high = middle;
  }
  return Math.abs(points[low][0] - x) < Math.abs(points[high][0] - x) ? points[low] : points[high];
}
const shownNumber = (value, perUnit, unit) => `${Number((value / perUnit).toPrecision(6))}${unit ? " " + unit : ""}`;

const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
let cross = null;
function hideTip() {
  tip.hidden = true;
  if (cross) cross.remove();
  cross = null;
}

// What the plot shows at a place of its drawing; null outside of its area.
function describe(svg, x, y) {
  const plot = readPlot(svg);
  const [left, top, width, height] = plot.area;
  if (x < left || x > left + width || y < top || y > top + height) return null;
  const at = valueAt(plot.x, (x - left) / width);
  const found = plot.lines.filter((line) => line.points.length > 0).map((line) => {
    const point = nearest(line.points, at);
    return { line, point, aside: Math.abs(left + width * share(plot.x, point[0]) - x),
             distance: Math.abs(top + height * (1 - share(plot.y, point[1])) - y) };
  }).filter((each) => each.aside < 25);  // a line that ended long before has no value here
  if (found.length === 0) return null;
  // Of the many grey lines only the one under the pointer.
  const faint = found.filter((each) => each.line.isFaint).sort((a, b) => a.distance - b.distance)[0];
  const shown = found.filter((each) => !each.line.isFaint || (each === faint && each.distance < 8));
  if (shown.length === 0) return null;
  const first = shown.reduce((a, b) => (a.distance < b.distance ? a : b));
  const head = `${svg.dataset.xn} ${shownNumber(first.point[0], plot.x[2], svg.dataset.xu)}`;
  const text = shown.map((each) => `${each.line.name}: ${shownNumber(each.point[1], plot.y[2], svg.dataset.yu)}`);
  return { text: [head, ...text].join("\n"), x: left + width * share(plot.x, first.point[0]), top, height };
}

document.addEventListener("pointermove", (event) => {
  const svg = event.target instanceof Element ? event.target.closest('svg[data-plot="line"]') : null;
  if (!svg) return hideTip();
  const box = svg.getBoundingClientRect();
  const scale = box.width / svg.viewBox.baseVal.width;
  const found = describe(svg, (event.clientX - box.left) / scale, (event.clientY - box.top) / scale);
  if (!found) return hideTip();
  if (!cross || cross.parentNode !== svg) {
    if (cross) cross.remove();
    cross = document.createElementNS(svg.namespaceURI, "path");
    cross.setAttribute("class", "cross");
    svg.append(cross);
  }
  cross.setAttribute("d", `M${found.x} ${found.top}v${found.height}`);
  tip.textContent = found.text;
  tip.hidden = false;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, room)) + scrollX}px`;
  tip.style.top = `${event.clientY + 16 + scrollY}px`;
});

// ---- What tests/page/page_browser_test.sh asks for: #selftest ----
function selfTest() {
  const names = () => rows.filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
  const result = { before: names() };
  const heads = all("thead th", table);
  const speed = heads.find((head) => head.textContent.startsWith("Speed")) ?? heads[0];
  const button = speed.querySelector("button");
  button.focus();
  result.focused = document.activeElement === button;
  button.click();
  result.ascending = names();
  result.sort = speed.getAttribute("aria-sort");
  button.click();
  result.descending = names();
  filter.value = result.before[0].slice(0, 6);
  filter.dispatchEvent(new Event("input"));
  result.filtered = names();
  result.shown = document.getElementById("shown").textContent;
  filter.value = "";
  status.selectedIndex = status.options.length - 1;
  status.dispatchEvent(new Event("change"));
  result.byStatus = names();
  status.value = "";
  status.dispatchEvent(new Event("change"));
  all("details").forEach((each) => { each.open = true; });
  const isWhole = (svg) => svg.getAttribute("aria-label") && svg.querySelector(".title") && svg.querySelector(".xt .at") &&
      svg.querySelector(".yt .at") && all(".xt text", svg).length >= 2 && svg.querySelector(".legend text");
  const drawn = all("svg");
  result.plots = drawn.length;
  result.incomplete = drawn.filter((svg) => !isWhole(svg)).map((svg) => svg.getAttribute("aria-label"));
  const line = drawn.find((svg) => svg.dataset.plot === "line");
  if (line) {
    const [left, top, width, height] = numbers(line.dataset.a);
    result.hover = describe(line, left + width, top + height / 2)?.text;
  }
  result.resources = performance.getEntriesByType("resource").map((entry) => entry.name);
  document.getElementById("theme").click();
  result.theme = root.dataset.theme;
  root.dataset.selftest = JSON.stringify(result);
}
if (location.hash === "#selftest") selfTest();
)js"
