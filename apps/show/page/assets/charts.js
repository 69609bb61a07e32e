// Curves over epochs, drawn by uPlot.
const charts = [];

// columnsOf collects what one chart draws: common epochs, then one row of values for each line.
function columnsOf(panel) {
  const runs = page.charts.runs, lines = [];
  runs.forEach((run, r) => panel.columns.forEach((name, c) => {
    if (!run.columns[name]?.some(v => v !== null)) return;
    const label = runs.length > 1 ? run.label + (panel.columns.length > 1 ? ", " + name : "") : name.replaceAll("_", " ").replace("images per", "samples per");
    lines.push({ label, epochs: run.epochs, values: run.columns[name], color: series[(runs.length > 1 ? r : c) % series.length], dash: runs.length > 1 && c > 0 ? [4 * c, 3] : undefined });
  }));
  const epochs = [...new Set(lines.flatMap(l => l.epochs))].sort((a, b) => a - b);
  const at = new Map(epochs.map((e, i) => [e, i]));
  const rows = lines.map(l => {
    const row = new Array(epochs.length).fill(null);
    l.epochs.forEach((e, i) => { row[at.get(e)] = l.values[i] ?? null; });
    return row;
  });
  return { lines, epochs, rows };
}

// steps are the ends of logarithmic axes within a decade.
const steps = [1, 2, 3, 5, 7, 10];

// counts are the distances of ticks of whole numbers.
const counts = Array.from({ length: 30 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));

// decades returns the ends of a logarithmic axis: the nearest steps around its values.
function decades(u, low, high) {
  if (!(low > 0) || !(high > 0)) return [.1, 1];
  const e = Math.floor(Math.log10(low)), f = Math.floor(Math.log10(high));
  const from = steps.findLast(s => s * 10 ** e <= low * 1.0001) * 10 ** e, to = steps.find(s => s * 10 ** f >= high * .9999) * 10 ** f;
  return from < to ? [from, to] : [from / 2, to * 2];
}

function drawChart(figure) {
  const panel = page.charts.panels[+figure.dataset.panel], plot = figure.querySelector(".plot"), log = figure.querySelector(".log").checked;
  const { lines, epochs, rows } = columnsOf(panel);
  const values = rows.flat().filter(v => v !== null), positive = values.filter(v => v > 0);
  const logarithmic = log && positive.length > 0;
  const wide = logarithmic && Math.max(...positive) > 1e3 * Math.min(...positive); // many decades: only they have lines
  const shown = logarithmic ? rows.map(row => row.map(v => v > 0 ? v : null)) : rows;
  const gray = { stroke: "#85858c", grid: { stroke: "#85858c33", width: 1 }, ticks: { stroke: "#85858c66", width: 1 }, font: "12px system-ui, sans-serif" };
  const options = {
    width: Math.max(200, plot.clientWidth), height: 230,
    legend: { markers: { dash: (u, i) => u.series[i].dash ? "dotted" : "solid" } },
    cursor: { drag: { x: true, y: false } },
    hooks: { setCursor: [u => plot.classList.toggle("hovered", u.cursor.idx !== null && u.cursor.idx !== undefined)] },
    scales: {
      x: { time: false, range: (u, low, high) => low === high ? [low - 1, high + 1] : [low, high] },
      y: logarithmic ? { distr: 3, range: decades } : panel.whole ? { range: (u, low, high) => [Math.max(0, Math.floor(low - (high - low) / 10)), Math.ceil(high + Math.max(1, (high - low) / 10))] } : {},
    },
    axes: [{ ...gray, incrs: counts, label: page.unit || "epoch", labelSize: 20, size: 34, labelFont: "12px system-ui, sans-serif" },
      { ...gray, ...(panel.whole ? { incrs: counts } : {}), size: 62, grid: { ...gray.grid, filter: (u, ticks) => logarithmic && wide ? ticks.map(t => Number.isInteger(Math.log10(t)) ? t : null) : ticks }, values: (u, ticks) => ticks.map(t => t === null ? "" : number(t)) }],
    series: [{ label: page.unit || "epoch" }, ...lines.map(l => ({ label: l.label, stroke: l.color, width: 1.6, dash: l.dash, spanGaps: true,
      points: { show: epochs.length < 3 }, value: (u, v) => number(v) }))],
  };
  figure.querySelector(".zeros").hidden = !(logarithmic && values.some(v => v <= 0));
  plot.textContent = "";
  return new uPlot(options, [epochs, ...shown], plot);
}

function drawCharts() {
  document.querySelectorAll(".chart").forEach((figure, i) => {
    if (charts[i]) charts[i].destroy();
    charts[i] = drawChart(figure);
  });
}

if (page.charts && window.uPlot) {
  drawCharts();
  document.querySelectorAll(".chart").forEach((figure, i) => {
    figure.querySelector(".log").addEventListener("change", () => { charts[i].destroy(); charts[i] = drawChart(figure); });
  });
  window.addEventListener("resize", later(() => document.querySelectorAll(".chart").forEach((figure, i) => {
    charts[i].setSize({ width: Math.max(200, figure.querySelector(".plot").clientWidth), height: 230 });
  }), 100));
}
