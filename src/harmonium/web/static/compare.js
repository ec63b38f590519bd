// Several runs on one plot.

import { follow, get } from "./api.js";
import { empty, fill, h, minus } from "./dom.js";
import { COLORS, comparedChart, swatch } from "./curves.js";
import { failed, line } from "./main.js";
import { address, chip } from "./runs.js";

const MOST = 8;

export async function show(place, names, ends) {
  document.title = "Compare · Harmonium";
  const words = await get("words");
  const runs = names.slice(0, MOST).map((name) => ({ name, records: [], row: null, settings: {} }));
  const table = h("table", { class: "runs compared" });
  const grid = h("div", { class: "grid" });
  const note = names.length > MOST ? h("p", { class: "notice" }, `The first ${MOST} of ${names.length} runs are shown.`) : "";
  fill(place, h("div", { class: "heading" }, h("h1", {}, "Compare"), h("p", { class: "soft" }, `${runs.length} runs`)), note, h("div", { class: "stack" }, h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Settings that differ" }, table), grid));
  let charts = [], known = "", waiting = false;
  const draw = () => {
    waiting = false;
    if (ends.over) return;
    const has = (metric) => runs.filter((run) => run.records.some((record) => typeof record[metric] === "number")).length;
    const metrics = words.panels.flat().filter((metric) => has(metric) > 0);
    if (metrics.join() !== known) {
      known = metrics.join();
      charts = metrics.map((metric) => comparedChart(ends, words, metric, runs));
      fill(grid, charts.length ? charts.map((chart) => chart.element) : empty("Nothing measured yet", "Curves appear at the end of the first epochs."));
    }
    charts.forEach((chart) => chart.draw());
  };
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  const heads = () => {
    const differ = differing(runs);
    const line = (title, of) => h("tr", {}, h("th", { scope: "row" }, title), runs.map((run) => h("td", {}, of(run))));
    fill(table,
      h("thead", {}, h("tr", {}, h("td", {}), runs.map((run, i) => h("th", { scope: "col" }, swatch(COLORS[i]), h("a", { href: address(run.name) }, run.name))))),
      h("tbody", {}, line("status", (run) => (run.row ? chip(run.row.status) : "")), line("score", (run) => run.row?.error || minus(run.row?.score ?? "") || "–"),
        differ.map((key) => line(key, (run) => String(run.settings[key] ?? "–")))));
    place.dataset.ready = "true";
  };
  for (const run of runs) {
    ends.add(follow({ run: run.name }, {
      line: (state, error) => { line(state, error); if (state === "refused") { run.row = { status: "broken", error: error.message }; heads(); } },
      reset: () => { run.records.length = 0; soon(); },
      epochs: (more) => { run.records.push(...more.filter(Boolean)); soon(); },
      state: (row) => { run.row = row; heads(); },
      gone: () => { run.row = { status: "broken", error: "deleted" }; heads(); },
      over: () => run.row?.error === "deleted",
    }));
    get("run", { run: run.name }).then((found) => { run.settings = flat(found.settings ?? {}); heads(); }).catch(() => {});
  }
  if (!runs.length) failed(place, new Error("Choose two or more runs in the table."));
}

function flat(settings) {
  return Object.fromEntries(Object.entries(settings).flatMap(([section, values]) =>
    Object.entries(values).map(([key, value]) => [`${section}.${key}`, typeof value === "object" ? JSON.stringify(value) : value])));
}

const DULL = ["run.threads", "run.report", "run.evaluate", "run.checkpoint_seconds", "run.checkpoint_updates"];

function differing(runs) {
  const keys = [...new Set(runs.flatMap((run) => Object.keys(run.settings)))].filter((key) => !DULL.includes(key));
  return keys.filter((key) => runs.some((run) => run.settings[key] !== runs[0].settings[key]));
}
