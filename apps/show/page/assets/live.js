// What only `tessera ui` has: the list of runs, and pages that follow trainings.

// localTime writes seconds since 1970 in the reader's time zone: 2026-11-23 04:13.
function localTime(seconds) {
  const zone = new Date(seconds * 1000).getTimezoneOffset() * 60;
  return new Date((seconds - zone) * 1000).toISOString().slice(0, 16).replace("T", " ");
}

class ListView {
  constructor(rows) {
    this.rows = new Map(rows.map(r => [r.path, r]));
    this.chosen = new Set();
    this.sorted = { name: "changed", down: true };
    this.columns = [
      { name: "name", value: r => r.path, text: r => element("a", { href: r.link }, r.path) },
      { name: "model", value: r => r.model, text: r => r.model },
      { name: "data", value: r => r.dataset, text: r => r.dataset },
      { name: "state", value: r => r.state, text: r => r.kind === "sweep" ? "sweep, " + r.state : r.state },
      { name: "epochs", value: r => r.epoch, text: r => r.kind === "sweep" ? `${r.epoch} of ${r.epochs} trials` : `${r.epoch} of ${r.epochs}` },
      { name: "loss", value: r => r.loss, text: r => r.loss ? number(r.loss) : "" },
      { name: "measured", value: r => r.value, text: r => r.metric ? `${r.metric} ${number(r.value)}` : "" },
      { name: "changed", value: r => r.modified, text: r => r.modified ? localTime(r.modified) : "-" },
    ];
    document.getElementById("list-filter").addEventListener("input", () => this.draw());
    const compare = document.getElementById("list-compare");
    compare.addEventListener("click", () => { location.href = "/compare?" + [...this.chosen].map(p => "run=" + encodeURIComponent(p)).join("&"); });
    this.draw();
    const events = new EventSource("/events");
    events.addEventListener("list", e => {
      const change = JSON.parse(e.data);
      if (change.whole) this.rows.clear();
      (change.rows || []).forEach(r => this.rows.set(r.path, r));
      (change.gone || []).forEach(p => { this.rows.delete(p); this.chosen.delete(p); });
      this.draw();
    });
  }

  draw() {
    const words = document.getElementById("list-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...this.rows.values()].filter(r => { const text = [r.path, r.model, r.dataset, r.state, r.kind].join(" ").toLowerCase(); return words.every(w => text.includes(w)); });
    const by = this.columns.find(c => c.name === this.sorted.name), down = this.sorted.down ? -1 : 1;
    rows.sort((a, b) => { const x = by.value(a), y = by.value(b); return down * (typeof x === "number" ? x - y : x.localeCompare(y, undefined, { numeric: true })) || a.path.localeCompare(b.path); });
    const shown = rows.slice(0, 2000);
    document.getElementById("list-count").textContent = `${rows.length} of ${this.rows.size}` + (shown.length < rows.length ? ", the first 2000 are shown" : "");
    document.getElementById("list-compare").disabled = this.chosen.size < 2;
    const head = element("tr", {}, element("td", {}), ...this.columns.map(c => element("th", { scope: "col", "aria-sort": c === by ? (this.sorted.down ? "descending" : "ascending") : undefined },
      element("button", { type: "button", click: () => { this.sorted = { name: c.name, down: c === by ? !this.sorted.down : false }; this.draw(); } }, c.name))));
    const body = shown.map(r => element("tr", { "data-path": r.path, class: "is-" + r.state }, element("td", {}, r.kind === "run" ? this.box(r) : ""),
      ...this.columns.map((c, i) => element(i ? "td" : "th", i ? {} : { scope: "row" }, c.text(r)))));
    document.getElementById("list").replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
  }

  box(r) {
    const box = element("input", { type: "checkbox", "aria-label": "compare " + r.path, change: e => {
      this.chosen[e.target.checked ? "add" : "delete"](r.path);
      document.getElementById("list-compare").disabled = this.chosen.size < 2;
    } });
    box.checked = this.chosen.has(r.path);
    return box;
  }
}

// follow draws the curves of a run in training; when it ends, the whole report is loaded.
function follow(address) {
  const events = new EventSource(address), status = document.getElementById("live");
  events.addEventListener("run", e => {
    const now = JSON.parse(e.data), titles = panels => (panels || []).map(p => p.title).join("\n");
    status.textContent = now.text;
    if (now.ended || titles(now.charts.panels) !== titles(page.charts.panels)) {
      events.close();
      location.reload();
      return;
    }
    page.charts = now.charts;
    drawCharts();
  });
}

function followSweep(address) {
  const status = document.getElementById("live");
  new EventSource(address).addEventListener("sweep", () => status.replaceChildren("There are new results: ", element("a", { href: "" }, "show them")));
}

if (page.list) new ListView(page.list);
if (page.live) follow(page.live);
if (page.liveSweep) followSweep(page.liveSweep);
