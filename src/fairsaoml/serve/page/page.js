// The page of a live service. All that comes from the data is set as text, never as markup.
"use strict";

const WINDOW = 10; // rounds that a point of a curve pools
const ENOUGH_ROWS = 2000; // that the verdict speaks of
const REDRAW_MS = 400; // at most so often
const REFRESH_MS = 2000; // figures that no event tells of
const Z = 1.96; // 95 % intervals
const COLOURS = 6;
const RATES = {
  selection_rate: ["predicted_positive", "rows"],
  true_positive_rate: ["true_positive", "y1_rows"],
  false_positive_rate: ["false_positive", "y0_rows"],
};
const NOTIONS = {
  dp: ["demographic parity", ["selection_rate"]],
  eop: ["equal opportunity", ["true_positive_rate"]],
  eo: ["equalized odds", ["true_positive_rate", "false_positive_rate"]],
};

const $ = (id) => document.getElementById(id);
const make = (tag, text, parent, kind) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  if (parent) parent.append(element);
  return element;
};
const headers = () => {
  const token = sessionStorage.getItem("token");
  return token ? { authorization: `Bearer ${token}` } : {};
};

async function ask(path) {
  const answer = await fetch(path, { headers: headers() });
  if (answer.status === 401 || answer.status === 403) {
    $("token").hidden = false;
    throw new Error("a token is needed");
  }
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// Curves

const charts = [];
const rounds = []; // lines of the journal
const times = [];

const share = (value) => (value == null ? "-" : value.toFixed(3));
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString(undefined, { hour12: false });
const DAY = 86400;
const stamp = (seconds, span) => {
  const at = new Date(seconds * 1000);
  if (span > 3 * DAY) return at.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  const parts = { hour: "2-digit", minute: "2-digit", hour12: false };
  return at.toLocaleTimeString(undefined, span > 900 ? parts : { ...parts, second: "2-digit" });
};

class Chart {
  constructor(title, names, options = {}) {
    Object.assign(this, { title, names, options, columns: names.map(() => []), x: [] });
    const figure = make("figure", undefined, $("charts"));
    figure.tabIndex = 0;
    figure.setAttribute("role", "group");
    figure.setAttribute("aria-label", `${title}. Left and right arrows read the values.`);
    const caption = make("figcaption", undefined, figure);
    make("h2", title, caption);
    const legend = make("div", undefined, caption, "legend");
    names.forEach((name, place) => {
      const item = make("span", undefined, legend);
      make("i", undefined, item, `k${place % COLOURS}`);
      item.append(name);
    });
    this.place = make("div", undefined, figure);
    this.readout = make("p", "", figure, "readout");
    // Read aloud only while somebody is in the chart, not with every round of every chart.
    figure.addEventListener("focus", () => this.readout.setAttribute("aria-live", "polite"));
    figure.addEventListener("blur", () => this.readout.setAttribute("aria-live", "off"));
    figure.addEventListener("keydown", (event) => this.move(event));
    this.figure = figure;
    this.build();
    new ResizeObserver(() => this.resize()).observe(figure);
    charts.push(this);
  }

  build() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const series = [{}];
    this.names.forEach((name, place) => {
      const stroke = colour(`--c${place % COLOURS}`);
      series.push({ stroke, width: 2, points: { show: false }, spanGaps: false });
    });
    const bands = [];
    if (this.options.bands) {
      this.names.forEach((name, place) => {
        const fill = colour(`--c${place % COLOURS}`) + "26";
        series.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } });
        const high = series.length - 1;
        bands.push({ series: [high, high - 1], fill });
      });
    }
    if (this.plot) this.plot.destroy();
    this.plot = new uPlot(
      {
        width: this.width(), height: 200, series, bands,
        legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false } },
        scales: { y: { range: this.options.range || ((plot, low, high) => [0, Math.max(high || 0, 1) * 1.08]) } },
        axes: [
          { ...axis, size: 32, space: 90, values: (plot, at) => at.map((one) => stamp(one, at[at.length - 1] - at[0])) },
          { ...axis, size: 52 },
        ],
        hooks: { setCursor: [() => this.read()], draw: [(plot) => this.line(plot, colour("--bad"))] },
      },
      this.data(), this.place,
    );
  }

  width() { return Math.max(200, this.figure.clientWidth - 26); }
  resize() { if (this.plot.width !== this.width()) this.plot.setSize({ width: this.width(), height: 200 }); }
  data() {
    const bands = this.options.bands ? this.bands.flat() : [];
    return [this.x, ...this.columns, ...bands];
  }
  get bands() { return this._bands || (this._bands = this.names.map(() => [[], []])); }

  // A figure is a number, one with its interval where the chart has bands, or null.
  push(x, figures) {
    this.x.push(x);
    figures.forEach((figure, place) => {
      this.columns[place].push(this.options.bands && figure ? figure.value : figure);
      if (!this.options.bands) return;
      this.bands[place][0].push(figure && figure.low);
      this.bands[place][1].push(figure && figure.high);
    });
  }

  draw() {
    this.plot.setData(this.data());
    if (this.plot.cursor.idx == null) this.say(this.x.length - 1);
  }

  line(plot, stroke) {
    if (this.options.line == null) return;
    const y = Math.round(plot.valToPos(this.options.line, "y", true));
    const { left, width } = plot.bbox;
    plot.ctx.save();
    plot.ctx.strokeStyle = stroke;
    plot.ctx.setLineDash([6, 5]);
    plot.ctx.beginPath();
    plot.ctx.moveTo(left, y);
    plot.ctx.lineTo(left + width, y);
    plot.ctx.stroke();
    plot.ctx.restore();
  }

  move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !this.x.length) return;
    event.preventDefault();
    const from = this.plot.cursor.idx ?? this.x.length - 1;
    const to = Math.min(Math.max(from + step, 0), this.x.length - 1);
    this.plot.setCursor({ left: this.plot.valToPos(this.x[to], "x"), top: 0 });
    this.say(to);
  }

  read() {
    const place = this.plot.cursor.idx;
    if (place != null) this.say(place);
  }

  say(place) {
    if (place < 0) return;
    const shown = this.options.shown || share;
    const parts = this.names.map((name, at) => `${name} ${shown(this.columns[at][place])}`);
    this.readout.textContent = `${clock(this.x[place])}: ${parts.join(" · ")}`;
  }
}

// Rounds, pooled over a window that slides

const pools = new Map(); // attribute -> level -> counts of the last rounds, and their sum

function pool(attribute, level, six) {
  const key = JSON.stringify([attribute, level]);
  const entry = pools.get(key) || { last: [], sum: {} };
  pools.set(key, entry);
  entry.last.push(six);
  for (const name in six) entry.sum[name] = (entry.sum[name] || 0) + six[name];
  if (entry.last.length > WINDOW) {
    const gone = entry.last.shift();
    for (const name in gone) entry.sum[name] -= gone[name];
  }
  return entry.sum;
}

// The lowest group's rate over the highest's, with Katz's interval of their ratio.
function ratio(levels, rate) {
  const [part, whole] = RATES[rate];
  const shares = levels.filter((six) => six[whole] > 0).map((six) => [six[part], six[whole]]);
  if (shares.length < 2) return null;
  shares.sort((one, other) => one[0] / one[1] - other[0] / other[1]);
  const [[a, n], [b, m]] = [shares[0], shares[shares.length - 1]];
  if (!b) return null;
  const value = (a / n) / (b / m);
  const error = Math.sqrt(1 / Math.max(a, 0.5) - 1 / n + 1 / b - 1 / m);
  return { value, low: value * Math.exp(-Z * error), high: Math.min(1, value * Math.exp(Z * error)) };
}

// A share with Wilson's interval.
function interval(part, whole) {
  if (!whole) return null;
  const value = part / whole, q = (Z * Z) / whole;
  const half = Math.sqrt(value * (1 - value) * q + (q * q) / 4);
  return { value, low: (value + q / 2 - half) / (1 + q), high: (value + q / 2 + half) / (1 + q) };
}

const plots = {};
let model = null;

function prepare() {
  const { notions, ratio: line } = model.asked;
  const attributes = Object.keys(model.groups);
  const unit = () => [0, 1];
  plots.fair = new Chart(
    "Fairness: lowest group's rate over highest",
    attributes.flatMap((a) => notions.map((n) => `${NOTIONS[n][0]} by ${a}`)),
    { bands: true, line, range: () => [0, 1.02] },
  );
  plots.accuracy = new Chart("Accuracy", ["accuracy"], { bands: true, range: () => [0.4, 1] });
  const levels = attributes.flatMap((a) => model.groups[a].map((level) => `${a} = ${level}`));
  plots.selection = new Chart("Positive decisions, by group", levels, { bands: true, range: unit });
  plots.base = new Chart("Positive labels, by group", levels, { bands: true, range: unit });
  const whole = (value) => (value == null ? "-" : value.toFixed(1));
  plots.memory = new Chart("Effective memory, in rounds", ["rounds"], { shown: whole });
  plots.labels = new Chart("Labels of a round", ["late", "missing"], { shown: whole });
  plots.traffic = new Chart("Requests a second, and their time in ms", ["requests / s", "mean ms", "longest ms"], { shown: whole });
}

function take(line) {
  if (rounds.length && line.round <= rounds[rounds.length - 1].round) return;
  rounds.push(line);
  const x = line.at;
  const fair = [], selection = [], base = [];
  let right = 0, rows = 0;
  Object.keys(model.groups).forEach((attribute, place) => {
    const counts = line.counts[attribute] || {};
    const known = model.groups[attribute].map((level) => pool(attribute, level, counts[level] || { rows: 0, predicted_positive: 0, y1_rows: 0, true_positive: 0, y0_rows: 0, false_positive: 0 }));
    for (const notion of model.asked.notions) {
      const found = NOTIONS[notion][1].map((rate) => ratio(known, rate));
      fair.push(found.includes(null) ? null : found.reduce((a, b) => (a.value < b.value ? a : b)));
    }
    for (const six of known) {
      selection.push(interval(six.predicted_positive, six.rows));
      base.push(interval(six.y1_rows, six.rows));
      if (!place) {
        right += six.true_positive + six.y0_rows - six.false_positive;
        rows += six.rows;
      }
    }
  });
  plots.fair.push(x, fair);
  plots.accuracy.push(x, [interval(right, rows)]);
  plots.selection.push(x, selection);
  plots.base.push(x, base);
  plots.memory.push(x, [line.memory]);
  plots.labels.push(x, [line.late, line.unlabelled]);
  redraw();
}

let drawing = false;
function redraw() {
  if (drawing) return;
  drawing = true;
  setTimeout(() => requestAnimationFrame(() => {
    drawing = false;
    charts.forEach((chart) => chart.draw());
    document.body.dataset.rounds = rounds.length;
  }), REDRAW_MS);
}

// Words

function list(parent, items, empty, kind) {
  const text = JSON.stringify(items);
  if (parent.dataset.items === text) return; // the same again would be read aloud again
  parent.dataset.items = text;
  parent.replaceChildren();
  items.forEach((text) => make("li", text, parent, kind));
  if (!items.length && empty) make("li", empty, parent);
}

function since(entry) {
  const line = rounds.find((one) => one.round === entry.since);
  return `since round ${entry.since}` + (line ? ` (${clock(line.at)})` : "");
}

async function words() {
  // "Now" is the last rounds alone: more of them where they are small.
  const now = Math.min(Math.max(WINDOW, Math.ceil(ENOUGH_ROWS / model.settings.rows)), 2000);
  const said = await ask(`/v1/fairness?window=${now}`);
  const on = Object.values(said.alarms).map((one) => `${one.message} Since round ${one.round}, ${clock(one.at)}.`);
  list($("alarms"), on, "None is on.", on.length ? "on" : "");
  list($("history"), said.alarm_history.map((one) => `${clock(one.at)}, round ${one.round}: ${one.message}`), "None so far.");
  if (!said.verdict) return;
  $("verdict").dataset.answer = said.verdict.answer;
  if ($("sentence").textContent !== said.verdict.sentence) $("sentence").textContent = said.verdict.sentence;
  document.title = `${said.verdict.sentence} · fairsaoml`;
  const reasons = [];
  for (const [attribute, entry] of Object.entries(said.verdict.attributes)) {
    reasons.push(entry.sentence);
    for (const key of model.asked.notions) {
      const notion = entry.notions[key];
      if (notion && notion.answer === "not fair") {
        reasons.push(`Worse off by ${NOTIONS[key][0]}: ${attribute} = ${notion.worse_off}, ${since(notion)}.`);
      }
    }
  }
  reasons.push(`Rounds ${said.rounds.join(" to ")}.`);
  list($("reasons"), reasons);
}

async function numbers() {
  model = await ask("/v1/model");
  $("learner").textContent = `· ${model.learner}, round ${model.round}`;
  const counts = model.counts;
  const shown = { decided: counts.issued, labelled: counts.labelled, waiting: counts.waiting, late: counts.late, "never to come": counts.never };
  $("numbers").replaceChildren();
  for (const [name, value] of Object.entries(shown)) {
    const pair = make("div", undefined, $("numbers"));
    make("dt", name, pair);
    make("dd", value.toLocaleString(), pair);
  }
  const warning = [model.never.warning, model.problem].filter(Boolean).join(" ");
  $("warning").hidden = !warning;
  $("warning").textContent = warning;
  if (plots.traffic) {
    plots.traffic.x = model.traffic.map((one) => one.at);
    plots.traffic.columns = [
      model.traffic.map((one) => one.rate),
      model.traffic.map((one) => one.mean * 1000),
      model.traffic.map((one) => one.longest * 1000),
    ];
    redraw();
  }
}

// Events, read by hand so that a token can be sent with the request

let last = 0;

async function listen() {
  const answer = await fetch("/v1/events", { headers: { ...headers(), "last-event-id": String(last) } });
  if (!answer.ok) throw new Error(`events: ${answer.status}`);
  $("connection").textContent = "live";
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the stream ended");
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) event(block);
  }
}

function event(block) {
  const fields = Object.fromEntries(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
  if (!fields.id) return;
  last = Number(fields.id);
  if (fields.event === "round") take(JSON.parse(fields.data));
  stale = true;
}

let stale = false;

async function begin() {
  await numbers();
  if (!plots.fair) prepare();
  for (;;) {
    const newest = rounds.length ? rounds[rounds.length - 1].round : 0;
    const said = await ask(`/v1/rounds?since=${newest}`);
    said.rounds.forEach(take);
    last = said.event;
    if (!said.rounds.length) break;
  }
  await Promise.all([words(), numbers()]);
  await listen();
}

async function forever() {
  for (let wait = 500; ; wait = Math.min(2 * wait, 10000)) {
    try {
      await begin();
    } catch (problem) {
      $("connection").textContent = `not connected (${problem.message}); trying again`;
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}

setInterval(() => {
  if (!plots.fair || document.hidden) return;
  numbers().catch(() => {});
  if (stale) {
    stale = false;
    words().catch(() => { stale = true; });
  }
}, REFRESH_MS);

$("token").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  sessionStorage.setItem("token", $("token-text").value);
  $("token").hidden = true;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.build()));
forever();
