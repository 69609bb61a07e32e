// The table, the plot and the atoms of a sweep.

class SweepView {
  constructor(sweep) {
    this.sweep = sweep;
    this.rows = sweep.settings.map((s, i) => ({ ...s, index: i }));
    this.visible = new Set(sweep.measures.map((m, i) => i).filter(i => (sweep.first || []).includes(sweep.measures[i].name)));
    if (this.visible.size < 2) sweep.measures.slice(0, 8).forEach((m, i) => this.visible.add(i));
    this.sorted = null;
    this.groups = [...new Set(this.rows.map(r => r.images))]; // of settings that are measured on the same images
    this.best = sweep.measures.map((m, i) => new Map(this.groups.map(images => {
      const values = this.rows.filter(r => r.images === images).map(r => r.mean[i]).filter(v => v !== null);
      return [images, m.better && new Set(values).size > 1 ? Math[m.better === "lower" ? "min" : "max"](...values) : null];
    })));
    this.texts = sweep.measures.map((m, i) => this.notation(i));
    this.models = new Set(this.rows.map(r => r.model)).size;
    this.controls();
    this.table();
    this.plot();
  }

  // notation prints the means and deviations of a metric, all of them alike: with the same decimals, or with an exponent.
  notation(i) {
    const values = this.rows.flatMap(r => r.mean[i] === null ? [] : [r.mean[i]]), sizes = values.filter(v => v !== 0).map(Math.abs);
    const all = [...values, ...this.rows.map(r => r.deviation[i] || 0)], low = Math.min(...sizes), high = Math.max(...sizes);
    if (!sizes.length || all.every(Number.isInteger)) return (v, d) => v + (d === null ? "" : " ± " + d);
    if (low < 1e-3 || high >= 1e6) return (v, d) => {
      const e = v === 0 ? 0 : Math.floor(Math.log10(Math.abs(v))), part = x => (x / 10 ** e).toFixed(2);
      return d === null ? part(v) + "e" + e : `(${part(v)} ± ${part(d)})e${e}`;
    };
    const decimals = Math.min(6, Math.max(1, 2 - Math.floor(Math.log10(low))));
    const more = this.rows.some(r => r.deviation[i] && +r.deviation[i].toFixed(decimals) === 0) ? decimals + 1 : decimals;
    return (v, d) => v.toFixed(more) + (d === null ? "" : " ± " + d.toFixed(more));
  }

  // spread reports whether the means of a metric span more than one and a half decades.
  spread(i) {
    const values = this.rows.map(r => r.mean[i]).filter(v => v !== null);
    return values.length > 0 && Math.min(...values) > 0 && Math.max(...values) > 10 ** 1.5 * Math.min(...values);
  }

  controls() {
    const by = id => document.getElementById(id), measures = this.sweep.measures;
    const options = (select, names, chosen) => { select.replaceChildren(...names.map((n, i) => element("option", { value: i }, n))); select.value = chosen; };
    options(by("x"), measures.map(m => m.name), 0);
    options(by("y"), measures.map(m => m.name), Math.min(1, measures.length - 1));
    options(by("color"), ["model", ...this.sweep.names], this.models === 1 && this.sweep.keys.length ? 1 : 0);
    ["x", "y"].forEach(id => {
      const fit = () => { by(id + "-log").checked = this.spread(+by(id).value); };
      if (measures.length) fit();
      by(id).addEventListener("change", () => { fit(); this.plot(); });
    });
    ["color", "x-log", "y-log"].forEach(id => by(id).addEventListener("change", () => this.plot()));
    by("filter").addEventListener("input", () => { this.table(); this.plot(); });
    by("columns").replaceChildren(...measures.map((m, i) => element("label", { title: m.about }, element("input", { type: "checkbox", ...(this.visible.has(i) ? { checked: "" } : {}),
      change: e => { this.visible[e.target.checked ? "add" : "delete"](i); this.table(); } }), " " + m.name)));
    options(by("trials"), this.sweep.trials.map((t, i) => this.trialName(i)), 0);
    by("trials").addEventListener("change", e => this.atoms(+e.target.value));
    if (this.sweep.trials.length) this.atoms(0);
    window.addEventListener("resize", later(() => this.plot(), 100));
  }

  // settingName says which setting a row is: its model, where there are several, and the values of the keys.
  settingName(row) {
    const values = row.values.map((v, k) => `${this.sweep.names[k]} ${v}`);
    return [...(this.models > 1 || !values.length ? [row.model] : []), ...values].join(", ");
  }

  // trialName says which trial it is: its setting and its seed.
  trialName(trial) {
    const row = this.rows.find(r => r.trials.includes(trial)), t = this.sweep.trials[trial];
    return `${this.settingName(row)}, seed ${t.seed}`;
  }

  // passes reports whether a row has all words of the filter: texts, or a metric compared with a number.
  passes(row) {
    const text = [row.model, ...row.values.map((v, k) => this.sweep.keys[k] + "=" + v + " " + this.sweep.names[k])].join(" ").toLowerCase();
    return document.getElementById("filter").value.toLowerCase().split(/\s+/).filter(Boolean).every(word => {
      const m = word.match(/^([\w.]+)([<>])(-?[\d.e-]+)$/), i = m ? this.sweep.measures.findIndex(c => c.name === m[1]) : -1;
      if (i < 0) return text.includes(word);
      const v = row.mean[i];
      return v !== null && (m[2] === "<" ? v < +m[3] : v > +m[3]);
    });
  }

  columns() {
    const keys = this.sweep.keys.map((k, i) => ({ name: this.sweep.names[i], about: k, value: r => r.values[i], text: r => r.values[i] }));
    const shown = this.sweep.measures.map((m, i) => ({ name: m.name + (m.of ? ` (of ${m.of})` : ""), about: m.about, better: m.better, value: r => r.mean[i], best: this.best[i],
      text: r => r.mean[i] === null ? "-" : this.texts[i](r.mean[i], r.deviation[i]) + this.fewer(r, i) })).filter((c, i) => this.visible.has(i));
    return [{ name: "model", value: r => r.model, text: r => r.model }, ...keys, { name: "seeds", value: r => r.seeds, text: r => String(r.seeds) }, ...shown];
  }

  // fewer says of how many seeds a mean is, where the metric is not applicable under some.
  fewer(row, i) {
    const seeds = row.trials.filter(t => (this.sweep.trials[t].numbers?.[i] ?? null) !== null).length;
    return seeds < row.seeds ? ` (${seeds} of ${row.seeds} seeds)` : "";
  }

  // varied leaves out the columns that are equal in all settings, and says what they are.
  varied(columns) {
    const equal = c => this.rows.length > 1 && new Set(this.rows.map(r => c.text(r))).size === 1, same = columns.filter(equal);
    document.getElementById("same").textContent = same.length ? "The same in all settings: " + same.map(c => `${c.name} ${c.text(this.rows[0])}`).join("; ") + "." : "";
    return columns.filter(c => !equal(c));
  }

  order(rows, column) {
    const down = this.sorted.down ? -1 : 1, key = r => { const v = column.value(r); return v === "" || v === null || Number.isNaN(+v) ? v : +v; };
    return rows.sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === null || y === null) return (x === null) - (y === null) || a.index - b.index;
      return down * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y))) || a.index - b.index;
    });
  }

  table() {
    const columns = this.varied(this.columns()), by = this.sorted && columns.find(c => c.name === this.sorted.name);
    let rows = this.rows.filter(r => this.passes(r));
    if (by) rows = this.order(rows, by);
    document.getElementById("count").textContent = `${rows.length} of ${this.rows.length} settings`;
    const head = element("tr", {}, ...columns.map(c => element("th", { scope: "col", title: c.about, "aria-sort": by === c ? (this.sorted.down ? "descending" : "ascending") : undefined },
      element("button", { type: "button", click: () => this.sort(c) }, c.name))));
    const body = rows.map(r => element("tr", { "data-setting": r.index, class: r.index === this.marked ? "marked" : undefined, click: () => this.mark(r.index) },
      ...columns.map((c, i) => i === 0 ? element("th", { scope: "row" }, element("button", { type: "button", click: e => { e.stopPropagation(); this.mark(r.index); } }, c.text(r))) :
        element("td", { class: c.best && c.value(r) !== null && c.value(r) === c.best.get(r.images) ? "best" : undefined }, c.text(r)))));
    document.getElementById("settings").replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
  }

  sort(column) {
    const again = this.sorted && this.sorted.name === column.name;
    this.sorted = { name: column.name, down: again ? !this.sorted.down : column.better === "higher" };
    this.table();
    [...document.querySelectorAll("#settings thead button")].find(b => b.textContent === column.name)?.focus();
  }

  mark(index) {
    this.marked = index;
    document.querySelectorAll("#settings tbody tr").forEach(tr => tr.classList.toggle("marked", +tr.dataset.setting === index));
    const trial = this.rows[index].trials[0];
    document.getElementById("trials").value = trial;
    this.atoms(trial);
  }

  atoms(trial) {
    const t = this.sweep.trials[trial], where = document.getElementById("sprite"), note = document.getElementById("trial-note");
    if (!t.atoms) { where.replaceChildren(); note.textContent = "no atoms to show"; return; }
    note.replaceChildren((t.atoms.shown < t.atoms.total ? `the first ${t.atoms.shown} of ${t.atoms.total} atoms` : `${t.atoms.total} atom${t.atoms.total === 1 ? "" : "s"}`) + (t.atoms.scale ? ". " + t.atoms.scale : "") + " ",
      t.link ? element("a", { href: t.link }, "its report") : "");
    where.classList.toggle("vectors", t.atoms.height === 1);
    where.replaceChildren(...(t.atoms.names ? [columnNames(t.atoms.names)] : []), ...Array.from({ length: t.atoms.shown }, (_, i) => this.atom(t.atoms, i)));
  }

  // atom cuts the i-th atom out of the picture of all.
  atom(sprite, i) {
    const { columns, width, height, shown } = sprite, rows = Math.ceil(shown / columns), about = sprite.abouts?.[i] ?? `atom ${i}`, picture = element("i", { role: "img", title: about, "aria-label": about });
    const place = (at, of, size) => of > 1 ? 100 * at * (size + 1) / ((of - 1) * (size + 1)) + "%" : "0";
    picture.style.backgroundImage = `url(${source(sprite.picture)})`;
    picture.style.backgroundSize = `${100 * (columns * (width + 1) - 1) / width}% ${100 * (rows * (height + 1) - 1) / height}%`;
    picture.style.backgroundPosition = `${place(i % columns, columns, width)} ${place(Math.floor(i / columns), rows, height)}`;
    if (height > 1) picture.style.aspectRatio = `${width} / ${height}`; // vectors are strips as wide as the page
    return element("span", { class: "atom" }, picture, element("span", {}, sprite.captions?.[i] ?? String(i)));
  }

  // scale maps values to places, with about five ticks.
  scale(values, log, from, to) {
    const f = log ? Math.log10 : v => v;
    let low = f(Math.min(...values)), high = f(Math.max(...values));
    if (high - low < 1e-6 * Math.max(Math.abs(low), Math.abs(high)) || low === high) { // one value: some space around it
      const around = Math.abs(low) / 10 || 1;
      low -= around; high += around;
    }
    const pad = (high - low) * .06;
    low -= pad; high += pad;
    const step = [1, 2, 5, 10].map(s => s * 10 ** Math.floor(Math.log10((high - low) / 5))).find(s => (high - low) / s <= 6) || (high - low) / 5;
    const ticks = [];
    if (log && high - low > 1) { // decades, with 2 and 5 between them where there is room
      for (let d = Math.floor(low); d <= high; d++) for (const m of high - low < 3 ? [1, 2, 5] : [1]) ticks.push(m * 10 ** d);
    } else for (let t = Math.ceil(low / step) * step; t <= high; t += step) ticks.push(log ? 10 ** t : +t.toPrecision(10));
    return { at: v => from + (f(v) - low) / (high - low) * (to - from), ticks: ticks.filter(t => f(t) >= low && f(t) <= high) };
  }

  plot() {
    const get = id => document.getElementById(id), x = +get("x").value, y = +get("y").value, xLog = get("x-log").checked, yLog = get("y-log").checked;
    const color = +get("color").value, groupOf = r => color === 0 ? r.model : r.values[color - 1];
    const rows = this.rows.filter(r => this.passes(r) && r.mean[x] !== null && r.mean[y] !== null && (!xLog || r.mean[x] > 0) && (!yLog || r.mean[y] > 0));
    const groups = [...new Set(this.rows.map(groupOf))], paint = r => series[groups.indexOf(groupOf(r)) % series.length];
    const where = get("plot");
    if (!rows.length || !this.sweep.measures.length) { where.replaceChildren(element("p", {}, "No setting has both metrics.")); get("legend").replaceChildren(); return; }
    const width = Math.max(320, where.clientWidth), height = Math.min(480, Math.max(280, width * .55));
    const ends = (r, i, log) => [r.mean[i] - (r.deviation[i] || 0), r.mean[i] + (r.deviation[i] || 0), r.mean[i]].filter(v => !log || v > 0);
    const sx = this.scale(rows.flatMap(r => ends(r, x, xLog)), xLog, 70, width - 16), sy = this.scale(rows.flatMap(r => ends(r, y, yLog)), yLog, height - 44, 12);
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${this.sweep.measures[y].name} against ${this.sweep.measures[x].name}` });
    for (const t of sx.ticks) svg.append(element("line", { class: "grid-line", x1: sx.at(t), x2: sx.at(t), y1: 12, y2: height - 44 }), element("text", { x: sx.at(t), y: height - 28, "text-anchor": "middle" }, number(t)));
    for (const t of sy.ticks) svg.append(element("line", { class: "grid-line", x1: 70, x2: width - 16, y1: sy.at(t), y2: sy.at(t) }), element("text", { x: 64, y: sy.at(t) + 4, "text-anchor": "end" }, number(t)));
    svg.append(element("text", { x: (width + 54) / 2, y: height - 8, "text-anchor": "middle" }, this.named(x)), element("text", { x: 14, y: (height - 32) / 2, transform: `rotate(-90 14 ${(height - 32) / 2})`, "text-anchor": "middle" }, this.named(y)));
    const fronts = this.groups.map(images => this.front(rows.filter(r => r.images === images), x, y)).filter(front => front.length > 1);
    for (const r of rows) svg.append(...this.marks(r, x, y, sx, sy, xLog, yLog, paint(r)));
    for (const front of fronts) svg.append(element("path", { class: "front", d: "M" + front.map(r => `${sx.at(r.mean[x])} ${sy.at(r.mean[y])}`).join("L") }));
    where.replaceChildren(svg);
    get("legend").replaceChildren(...(groups.length > 24 ? [] : groups.map((g, i) => { const dot = element("i", {}); dot.style.background = series[i % series.length]; return element("span", {}, dot, g || "-"); })));
  }

  named(i) {
    const m = this.sweep.measures[i];
    return m.name + (m.better ? ` (${m.better} is better)` : "");
  }

  marks(r, x, y, sx, sy, xLog, yLog, color) {
    const cx = sx.at(r.mean[x]), cy = sy.at(r.mean[y]), list = [];
    const bar = (s, v, d, log) => [s.at(log && v - d <= 0 ? v : v - d), s.at(v + d)];
    if (r.deviation[x]) { const [a, b] = bar(sx, r.mean[x], r.deviation[x], xLog); list.push(element("line", { class: "error", stroke: color, x1: a, x2: b, y1: cy, y2: cy })); }
    if (r.deviation[y]) { const [a, b] = bar(sy, r.mean[y], r.deviation[y], yLog); list.push(element("line", { class: "error", stroke: color, x1: cx, x2: cx, y1: a, y2: b })); }
    const label = [this.settingName(r), `${this.sweep.measures[x].name} ${number(r.mean[x])}`, `${this.sweep.measures[y].name} ${number(r.mean[y])}`].join(", ");
    list.push(element("circle", { class: "mark", cx, cy, r: 5.5, fill: color, tabindex: 0, role: "button", "aria-label": label, click: () => this.mark(r.index),
      keydown: e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); this.mark(r.index); } } }, element("title", {}, label)));
    return list;
  }

  // front is the rows that no other row beats in both metrics, from left to right; empty where a metric has no direction.
  front(rows, x, y) {
    const sign = i => ({ lower: 1, higher: -1 })[this.sweep.measures[i].better] || 0, dx = sign(x), dy = sign(y);
    if (!dx || !dy || x === y) return [];
    const beats = (a, b) => dx * a.mean[x] <= dx * b.mean[x] && dy * a.mean[y] <= dy * b.mean[y] && (a.mean[x] !== b.mean[x] || a.mean[y] !== b.mean[y]);
    return rows.filter(r => !rows.some(o => beats(o, r))).sort((a, b) => a.mean[x] - b.mean[x]);
  }
}

if (page.sweep) new SweepView(page.sweep);
