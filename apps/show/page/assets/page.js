"use strict";
// What all scripts of a page share.
const page = JSON.parse(document.getElementById("data").textContent) || {};

// element makes an element: attributes whose value is a function are listeners.
function element(name, attributes, ...children) {
  const svg = ["svg", "g", "rect", "line", "path", "circle", "text", "title"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") e.addEventListener(key, value);
    else if (value !== undefined && value !== null) e.setAttribute(key, value);
  }
  e.append(...children.filter(c => c !== undefined && c !== null));
  return e;
}

const source = png => "data:image/png;base64," + png;

// number prints a value with four significant digits.
function number(v) {
  if (v === null || v === undefined || Number.isNaN(v)) return "-";
  if (v === 0 || Math.abs(v) >= 1e-3 && Math.abs(v) < 1e4) return String(+v.toPrecision(4));
  if (Math.abs(v) >= 1e4 && Math.abs(v) < 1e7) return Math.round(v).toLocaleString("en");
  return v.toExponential(2).replace(/\.?0+e/, "e");
}

// columnNames is the names of the columns above rows of values.
function columnNames(names) {
  return element("div", { class: names.length > 16 ? "columns many" : names.length > 6 ? "columns" : "columns few" }, ...names.map(name => element("span", { title: name }, name)));
}

// series are the colours of runs and settings: distinguishable on light and on dark ground.
const series = ["#d9662b", "#3b82c4", "#3f9b5f", "#a05cc0", "#c49a1a", "#d0568a", "#3aa6a6", "#8a8f98"];

// later calls f once, after the last of several calls.
function later(f, milliseconds) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(f, milliseconds); };
}
