// Curves over the epochs, with bands of two standard errors, drawn by uPlot.

import { h, fill, short } from "./dom.js";
import { color, onScheme } from "./pictures.js";

/* Okabe and Ito (2008): told apart with any kind of color vision. */
export const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#7f7f7f"];

const HEIGHT = 190;

/** Epochs, values and errors of a metric, as the report draws them. */
function points(records, metric) {
  const own = `${metric}_error`;
  const shared = metric.endsWith("log_likelihood") && !records.some((record) => own in record);
  const errors = shared ? "log_z_error" : own;
  const x = [], y = [], e = [];
  records.forEach((record, i) => {
    const value = record[metric];
    if (typeof value === "number") { x.push(record.epoch ?? i + 1); y.push(value); e.push(record[errors] ?? 0); }
  });
  return { x, y, e };
}

/** The panels that some records fill. */
export function panelsOf(words, records) {
  const has = (metric) => records.some((record) => typeof record[metric] === "number");
  return words.panels.map((panel) => panel.filter(has)).filter((panel) => panel.length);
}

/**
 * A chart of some series; each has a label, a color, and a function that returns its points.
 * Call `draw()` when they have grown.
 */
export class Chart {
  constructor(ends, title, unit, caption, series, level, isCount = false) {
    Object.assign(this, { series, level, title, isCount });
    this.place = h("div", { class: "chart", role: "img" });
    this.legend = h("ul", { class: "legend" });
    this.element = h("figure", { class: "card" }, h("h2", {}, title, unit ? h("span", { class: "soft unit" }, ` ${unit}`) : ""),
      this.legend, this.place, caption ? h("figcaption", {}, caption) : "");
    this.plot = null;
    const size = new ResizeObserver(() => this.plot?.setSize({ width: this.place.clientWidth, height: HEIGHT }));
    size.observe(this.place);
    ends.add(() => { size.disconnect(); this.plot?.destroy(); this.plot = null; });
    onScheme(ends, () => { this.plot?.destroy(); this.plot = null; this.draw(); });
  }

  /** All series over the union of their epochs, each with the two edges of its band. */
  data() {
    const found = this.series.map((one) => one.points());
    const x = [...new Set(found.flatMap((p) => p.x))].sort((a, b) => a - b);
    const index = new Map(x.map((value, i) => [value, i]));
    const columns = found.flatMap((p) => {
      const [y, high, low] = [0, 1, 2].map(() => new Array(x.length).fill(null));
      p.x.forEach((value, k) => {
        const i = index.get(value);
        y[i] = p.y[k];
        if (p.e[k]) { high[i] = p.y[k] + 2 * p.e[k]; low[i] = p.y[k] - 2 * p.e[k]; }
      });
      return [y, high, low];
    });
    return [x, ...columns];
  }

  draw() {
    if (!this.place.clientWidth) return;
    const data = this.data();
    if (!data[0].length) return;
    if (this.plot) this.plot.setData(data);
    else this.plot = new uPlot(this.options(), data, this.place);
    this.tell(data, null);
  }

  options() {
    const axis = { stroke: color("soft"), grid: { stroke: color("edge"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const edge = { stroke: "transparent", width: 0, points: { show: false } };
    return {
      width: this.place.clientWidth, height: HEIGHT, legend: { show: false },
      cursor: { y: false, points: { size: 6 }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (u, low, high) => this.range(low, high) } },
      series: [{}, ...this.series.flatMap((one) => [
        { stroke: one.color, width: 1.75, points: { show: (u, i) => u.data[i].filter((v) => v !== null).length < 3, size: 5 }, spanGaps: true }, edge, edge])],
      bands: this.series.map((one, i) => ({ series: [3 * i + 2, 3 * i + 3], fill: `${one.color}33` })),
      axes: [{ ...axis, size: 28, values: (u, at) => at.map((v) => (Number.isInteger(v) ? v : "")) },
        { ...axis, size: 58, values: (u, at) => at.map(tick) }],
      hooks: { setCursor: [(u) => this.tell(u.data, u.cursor.idx)], draw: this.level === undefined ? [] : [(u) => this.drawLevel(u)] },
    };
  }

  range(low, high) {
    if (low === null) return [0, 1];
    if (this.isCount) return [0, Math.max(1, high * 1.06)];
    const more = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - more, high + more];
  }

  drawLevel(u) {
    const y = u.valToPos(this.level, "y", true);
    if (y < u.bbox.top || y > u.bbox.top + u.bbox.height) return;
    const c = u.ctx;
    c.save();
    c.strokeStyle = color("soft");
    c.setLineDash([5, 4]);
    c.beginPath();
    c.moveTo(u.bbox.left, y);
    c.lineTo(u.bbox.left + u.bbox.width, y);
    c.stroke();
    c.restore();
  }

  /** The values at the cursor, or the last ones; and the curve in words. */
  tell(data, at) {
    const last = (column) => { for (let i = column.length - 1; i >= 0; i -= 1) if (column[i] !== null) return i; return -1; };
    const said = [];
    fill(this.legend, this.series.map((one, k) => {
      const column = data[3 * k + 1];
      const i = at !== null && at !== undefined && column[at] !== null ? at : last(column);
      if (i < 0) return null;
      const band = data[3 * k + 2][i];
      const value = short(column[i]) + (band === null ? "" : ` ± ${short((band - column[i]) / 2)}`);
      const first = column.findIndex((v) => v !== null);
      said.push(`${one.label}: ${short(column[first])} at epoch ${data[0][first]}, ${short(column[last(column)])} at epoch ${data[0][last(column)]}`);
      return h("li", {}, swatch(one.color), `${one.label} `, h("b", {}, value), at !== null && at !== undefined ? ` at ${data[0][i]}` : "");
    }));
    this.place.setAttribute("aria-label", `${this.title}. ${said.join("; ")}`);
  }
}

export function swatch(value) {
  const found = h("span", { class: "swatch" });
  found.style.background = value;
  return found;
}

function tick(v) {
  const size = Math.abs(v);
  if (v === 0) return "0";
  return (size >= 1e5 || size < 1e-3 ? v.toExponential(0) : String(Number(v.toPrecision(4)))).replace("-", "−");
}

/** The chart of one panel of one run. */
export function panelChart(ends, words, panel, records) {
  const [title, unit] = words.titles[panel[0]] ?? [panel[0].replaceAll("_", " "), ""];
  const series = panel.map((metric, i) => ({
    label: words.labels[metric] ?? metric.replaceAll("_", " "), color: COLORS[i], points: () => points(records(), metric),
  }));
  if (series.length === 1) series[0].label = "";
  return new Chart(ends, title, unit, words.captions[panel[0]], series, words.levels[panel[0]], words.counts.includes(panel[0]));
}

/** The chart of one metric of several runs. */
export function comparedChart(ends, words, metric, runs) {
  const panel = words.panels.find((one) => one.includes(metric)) ?? [metric];
  const [title, unit] = words.titles[panel[0]] ?? [metric.replaceAll("_", " "), ""];
  const series = runs.map((run, i) => ({ label: run.name, color: COLORS[i % COLORS.length], points: () => points(run.records, metric) }));
  const named = panel.length > 1 ? `${title}, ${words.labels[metric] ?? metric}` : title;
  return new Chart(ends, named, unit, "", series, words.levels[panel[0]], words.counts.includes(panel[0]));
}
