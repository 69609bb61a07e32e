// The atoms of a run and the slider of its images.

// bars draws values as bars from a line at 0.
function bars(values, labels, height) {
  const high = Math.max(0, ...values), low = Math.min(0, ...values), span = high - low || 1;
  const svg = element("svg", { viewBox: `0 0 ${values.length} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  values.forEach((v, i) => {
    const h = Math.abs(v) / span * height;
    if (h === 0) return;
    svg.append(element("rect", { x: i + .08, width: .84, y: (high - Math.max(v, 0)) / span * height, height: h }, element("title", {}, labels(i))));
  });
  svg.append(element("line", { x1: 0, x2: values.length, y1: high / span * height, y2: high / span * height, class: "axis" }));
  return svg;
}

class RunView {
  constructor(article, data) {
    this.article = article;
    this.data = data;
    this.pictures = new Map();
    article.querySelectorAll(".atom[data-unit]").forEach(b => {
      this.pictures.set(+b.dataset.unit, b.querySelector("img").src);
      b.addEventListener("click", () => this.open(+b.dataset.unit));
    });
    this.grid = article.querySelector(".gallery.grid");
    this.row = article.querySelector(".gallery.row");
    const above = e => e.previousElementSibling?.matches(".columns") ? e.previousElementSibling : e; // names of columns stay next to their rows
    if (data.units) above(this.grid).before(this.orders());
    article.querySelectorAll(".ref[data-unit]").forEach(span => span.replaceWith(this.ref(+span.dataset.unit, span.textContent, span.title)));
    if (data.samples) {
      this.slider = element("input", { type: "range", class: "slider", min: 0, max: data.samples.length - 1, value: 0, input: () => this.sample(+this.slider.value) });
      this.which = element("output");
      this.code = element("div", { class: "code", role: "img" });
      above(this.row).before(element("p", { class: "bar" }, element("label", {}, data.noun + " ", this.slider), " ", this.which));
      this.row.after(this.code);
      this.sample(0);
    }
  }

  // orders is the choice of the order of the units.
  orders() {
    const by = { number: "by number", active: `by share of ${this.data.noun}s that use it`, mean: "by mean use", max: "by largest use" };
    return element("p", { class: "bar" }, element("label", {}, "order ", element("select", { class: "order", change: e => this.sort(e.target.value) },
      ...Object.entries(by).map(([value, text]) => element("option", { value }, text)))));
  }

  // ref is a small picture of a unit that opens it.
  ref(unit, text, title) {
    const picture = this.pictures.get(unit);
    return element("button", { type: "button", class: "ref", title, "aria-label": `${this.data.kind} ${title || text}`, click: () => this.open(unit) },
      picture ? element("img", { src: picture, alt: "" }) : undefined, text);
  }

  sort(by) {
    const grid = this.grid, key = b => by === "number" ? -b.dataset.unit : this.data.units[b.dataset.unit][by];
    const cells = [...grid.querySelectorAll("button.atom")].sort((a, b) => key(b) - key(a) || a.dataset.unit - b.dataset.unit);
    this.order = cells.map(c => +c.dataset.unit);
    grid.prepend(...cells); // the bias stays last
  }

  called(i) { return this.data.called?.[i] ?? `${this.data.noun} ${i}`; }

  sample(i) {
    const s = this.data.samples[i], which = `${this.called(s.number)}${s.class ? ", " + s.class : ""}`;
    this.row.querySelectorAll("img").forEach((img, p) => { img.src = source(s.pictures[p]); });
    this.row.querySelectorAll("figcaption").forEach((caption, p) => { caption.textContent = s.captions[p]; });
    this.which.textContent = which;
    this.slider.setAttribute("aria-valuetext", which);
    this.code.replaceChildren(bars(s.code, j => `unit ${j}: ${number(s.code[j])}`, 40));
    this.code.setAttribute("aria-label", `code of ${which}: ${s.code.filter(v => v !== 0).length} of ${s.code.length} values are not 0`);
    this.row.closest("section").querySelector(".most").replaceChildren(...(s.most || []).map(([unit, label]) => this.ref(+unit, label)));
  }

  open(unit) {
    const dialog = document.getElementById("unit"), d = this.data.units[unit];
    if (!d) return;
    RunView.shown = { view: this, unit };
    dialog.querySelector("h2").textContent = `${this.data.kind} ${unit}`;
    document.getElementById("unit-body").replaceChildren(this.detail(unit, d));
    if (!dialog.open) dialog.showModal();
  }

  // step opens the next unit in the order of the grid.
  step(by) {
    const order = this.order || [...this.pictures.keys()], at = order.indexOf(RunView.shown.unit);
    this.open(order[(at + by + order.length) % order.length]);
  }

  detail(unit, d) {
    const used = d.active > 0, noun = this.data.noun;
    const histogram = element("div", { class: "histogram", role: "img", "aria-label": `histogram of the use, from ${number(d.low)} to ${number(d.high)}` },
      bars(d.counts, i => `${d.counts[i]} ${noun}s`, 40), element("div", { class: "ends note" }, element("span", {}, number(d.low)), element("span", {}, number(d.high))));
    const facts = element("div", {}, element("p", {}, used ? `Used by ${number(100 * d.active)} % of the ${noun}s. Use is its ${this.data.use}: mean ${number(d.mean)}, largest ${number(d.max)}.` : `No ${noun} uses it.`));
    if (used) facts.append(element("h3", {}, `Histogram of the use, by the ${noun}s that use it`), histogram);
    const picture = this.pictures.get(unit);
    const vectors = this.data.vectors ? " vectors" : "";
    const head = this.data.names ? columnNames(this.data.names) : "";
    const body = element("div", { class: "detail" + vectors }, element("div", {}, head, element("img", { src: picture, alt: `${this.data.kind} ${unit}, enlarged` })), facts);
    const rest = element("div", {});
    if (d.class && used) rest.append(element("h3", {}, "Mean use by class"), this.shares(d.class));
    if (d.top.length) {
      rest.append(element("h3", {}, `The ${noun}s that use it most`), element("div", { class: "pictures" }, ...d.top.map(([image, use]) =>
        element("figure", {}, element("img", { src: source(this.data.images[image]), alt: this.called(image) }), element("figcaption", { class: "note" }, `${this.called(image)}: ${number(use)}`)))));
    }
    if (d.near.length) {
      rest.append(element("h3", {}, "Neighbours: used together most (correlation, cosine of the pictures)"), element("div", { class: "most" },
        ...d.near.map(([other, correlation, cosine]) => this.ref(other, `${other}: ${correlation.toFixed(2)}${this.data.kind === "atom" ? ", " + cosine.toFixed(2) : ""}`))));
    }
    return element("div", { class: vectors.trim() }, body, rest);
  }

  shares(values) {
    const most = Math.max(...values) || 1;
    return element("div", { class: "shares" }, ...values.flatMap((v, c) => {
      const bar = element("i", {});
      bar.style.width = Math.max(0, 100 * v / most) + "%";
      return [element("span", {}, this.data.classes[c]), element("span", { title: number(v) }, bar)];
    }));
  }
}

(page.runs || []).forEach(data => {
  const article = document.querySelector(`[data-run="${data.id}"]`);
  if (article) new RunView(article, data);
});

const unitDialog = document.getElementById("unit");
unitDialog.querySelectorAll("[data-step]").forEach(b => b.addEventListener("click", () => RunView.shown.view.step(+b.dataset.step)));
unitDialog.addEventListener("keydown", e => {
  if (e.key === "ArrowLeft" || e.key === "ArrowRight") { e.preventDefault(); RunView.shown.view.step(e.key === "ArrowLeft" ? -1 : 1); }
});
unitDialog.addEventListener("click", e => { if (e.target === unitDialog) unitDialog.close(); });
