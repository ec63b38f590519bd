// What each step of the tour says, and what is done and seen in it.

import { fill, h, loop, runButton, share, short, toast } from "./dom.js";
import { action, newest } from "./controls.js";
import { Chart } from "./curves.js";
import { canvas, color, drawGrid, onScheme } from "./pictures.js";

/** Bars on a canvas; `marks` are dots to compare with, `on` is the bar that is meant. */
function bars(ends, label, tall = 150) {
  const picture = h("canvas", { class: "tour-bars", role: "img", "aria-label": label });
  picture.style.height = `${tall}px`;
  let last = null;
  const draw = (values, { marks = null, on = -1, top = null, said = label, names = null } = {}) => {
    last = [values, { marks, on, top, said, names }];
    const wide = picture.clientWidth || 500;
    picture.width = 2 * wide;
    picture.height = 2 * tall;
    const c = picture.getContext("2d");
    c.scale(2, 2);
    const foot = names ? 18 : 4;
    const most = top ?? Math.max(...values, ...(marks ?? []), 1e-9);
    const each = wide / values.length;
    const height = (v) => (tall - foot - 8) * (v / most);
    values.forEach((v, i) => {
      c.fillStyle = i === on ? color("warn") : color("accent");
      c.fillRect(i * each + each * 0.12, tall - foot - height(v), each * 0.76, Math.max(1, height(v)));
    });
    if (marks) {
      c.fillStyle = color("ink");
      marks.forEach((v, i) => c.fillRect(i * each + each * 0.05, tall - foot - height(v) - 1, each * 0.9, 2.5));
    }
    if (names && each > 26) {
      c.fillStyle = color("soft");
      c.font = "11px ui-monospace, monospace";
      c.textAlign = "center";
      names.forEach((name, i) => c.fillText(name, (i + 0.5) * each, tall - 4));
    }
    picture.setAttribute("aria-label", said);
  };
  onScheme(ends, () => last && draw(...last));
  const size = new ResizeObserver(() => last && draw(...last));
  size.observe(picture);
  ends.add(() => size.disconnect());
  return { picture, draw };
}

/** A row of units to be switched, as buttons. */
function units(name, n, onchange, { disabled = false } = {}) {
  const values = new Array(n).fill(0);
  const buttons = values.map((_, i) => h("button", { class: "unit", "aria-pressed": "false", disabled, onclick: () => { values[i] = 1 - values[i]; paint(); onchange?.(); } }));
  const paint = () => buttons.forEach((button, i) => { button.setAttribute("aria-pressed", String(values[i] > 0.5)); button.style.setProperty("--on", values[i]); button.textContent = disabled && values[i] % 1 ? values[i].toFixed(2) : String(values[i]); button.setAttribute("aria-label", `${name} unit ${i + 1}: ${button.textContent}`); });
  paint();
  return { values, element: h("div", { class: "units-row", role: "group", "aria-label": `${name} units` }, h("span", { class: "soft" }, name), buttons), set: (more) => { more.forEach((v, i) => { values[i] = v; }); paint(); } };
}

const card = (...children) => h("section", { class: "card" }, ...children);
const said = () => h("p", { class: "big" });
const guard = (f) => f().catch((error) => toast(error.message, true));

async function energyStep(place, move, ends) {
  const number = said();
  const more = h("p", { class: "soft" });
  const wires = h("canvas", { class: "wires", role: "img", "aria-label": "connections between units that are on" });
  let last = null;
  const ask = newest(async () => {
    const seen = await move({ step: "energy", v: v.values, h: hid.values });
    last = seen;
    number.textContent = `E = ${short(seen.energy)}`;
    more.textContent = seen.rank === 1 ? "This is the lowest energy of all 128 states: the most probable one." : `${seen.rank - 1} of 128 states lie lower; the lowest has ${short(seen.lowest)}.`;
    draw();
    place.dataset.energy = seen.energy;
  });
  const hid = units("hidden", 3, () => ask());
  const v = units("visible", 4, () => ask());
  const draw = () => {
    if (!last) return;
    const [wide, tall] = [wires.clientWidth || 420, 150];
    wires.width = 2 * wide;
    wires.height = 2 * tall;
    const c = wires.getContext("2d");
    c.scale(2, 2);
    const at = (i, n, y) => [(wide * (i + 0.5)) / n, y];
    let n = 0;
    last.weights.forEach((row, i) => row.forEach((w, j) => {
      const on = v.values[i] && hid.values[j];
      n += on;
      c.strokeStyle = on ? (w > 0 ? color("accent") : color("warn")) : color("edge");
      c.lineWidth = on ? 1 + 1.6 * Math.abs(w) : 1;
      c.beginPath();
      c.moveTo(...at(j, 3, 22));
      c.lineTo(...at(i, 4, tall - 22));
      c.stroke();
    }));
    const dot = (x, y, on) => { c.fillStyle = on ? color("ink") : color("surface"); c.strokeStyle = color("soft"); c.lineWidth = 2; c.beginPath(); c.arc(x, y, 12, 0, 7); c.fill(); c.stroke(); };
    hid.values.forEach((on, j) => dot(...at(j, 3, 22), on));
    v.values.forEach((on, i) => dot(...at(i, 4, tall - 22), on));
    wires.setAttribute("aria-label", `${n} connections are between units that are both on`);
  };
  onScheme(ends, draw);
  fill(place, h("div", { class: "bench" }, card(hid.element, wires, v.element), card(h("h2", {}, "Energy"), number, more, h("p", { class: "caption" }, "A blue line joins two units that are on and like it: it lowers the energy by its weight. An orange line raises it."))));
  ask();
}

async function lawStep(place, move, ends) {
  const chart = bars(ends, "probabilities of all states, the lowest energy first", 190);
  const out = h("output", {}, "1");
  const told = h("p", { class: "soft" });
  const slider = h("input", { type: "range", min: 0, max: 100, value: 100, "aria-label": "Inverse temperature" });
  const ask = newest(async () => {
    const beta = Number(slider.value) / 100;
    out.textContent = beta.toFixed(2);
    const { probabilities: p, entropy } = await move({ step: "law", beta });
    chart.draw(p, { said: `The most probable state has ${share(p[0])}; the entropy is ${entropy.toFixed(2)} nats` });
    told.textContent = `The best state has probability ${share(p[0])}. Entropy ${entropy.toFixed(2)} nats, at most ln 128 = 4.85: as if ${Math.round(Math.exp(entropy))} states were equally likely.`;
    place.dataset.entropy = entropy;
  });
  slider.addEventListener("input", () => ask());
  fill(place, h("div", { class: "stack" }, card(h("h2", {}, "All 128 states, from the lowest energy to the highest"), chart.picture, told), card(h("label", { class: "field" }, h("span", {}, "Inverse temperature β ", out), slider))));
  ask();
}

async function hiddenStep(place, move, ends) {
  const number = said();
  const answer = units("hidden", 3, null, { disabled: true });
  const chart = bars(ends, "probabilities of all 16 pictures");
  const names = Array.from({ length: 16 }, (_, i) => [0, 1, 2, 3].map((k) => (i >> k) & 1).join(""));
  const ask = newest(async () => {
    const seen = await move({ step: "hidden", v: v.values });
    answer.set(seen.means);
    number.textContent = `F = ${short(seen.free_energy)}`;
    chart.draw(seen.law, { on: seen.index, names, said: `this picture has probability ${share(seen.law[seen.index])}` });
    place.dataset.free = seen.free_energy;
  });
  const v = units("visible", 4, () => ask());
  fill(place, h("div", { class: "bench" }, card(h("h2", {}, "Chance that each hidden unit is on"), answer.element, v.element), card(h("h2", {}, "Free energy"), number, chart.picture, h("p", { class: "caption" }, "p(v) of all 16 pictures; orange is yours."))));
  ask();
}

async function sampleStep(place, move, ends) {
  const chart = bars(ends, "how often the chain was at each picture", 190);
  const told = h("p", { class: "big" });
  const hid = units("hidden", 3, null, { disabled: true });
  const v = units("visible", 4, null, { disabled: true });
  const names = Array.from({ length: 16 }, (_, i) => [0, 1, 2, 3].map((k) => (i >> k) & 1).join(""));
  const go = async (steps, restart = false) => {
    const seen = await move({ step: "sample", steps, restart });
    hid.set(seen.h);
    v.set(seen.v);
    chart.draw(seen.shares, { marks: seen.law, names, said: `after ${seen.n} steps; distance to the law ${short(seen.distance)}` });
    told.textContent = seen.n ? `${short(seen.n)} steps, distance ${seen.distance.toFixed(3)}` : "Not a step yet";
    place.dataset.steps = seen.n;
  };
  const run = loop(ends, 12, () => guard(() => go(10)));
  fill(place, h("div", { class: "stack" }, card(h("div", { class: "row" }, h("h2", {}, "Visits of the chain (bars) and the exact law (lines)"), told), chart.picture),
    h("div", { class: "two" }, card(h("h2", {}, "The chain now"), hid.element, v.element), card(h("div", { class: "tools-row" }, action("One step", () => go(1)), action("100 steps", () => go(100)), runButton(run), action("Start again", () => go(0, true))), h("p", { class: "caption" }, "A step draws the hidden units given the visible ones, then the visible ones given the hidden ones. The distance is the total variation: half the sum of the differences.")))));
  await go(0, true);
}

async function learnStep(place, move, ends) {
  const samples = canvas("samples of the machine");
  const filters = canvas("what the hidden units look for");
  const patterns = canvas("the patterns to be learned");
  const chart = bars(ends, "probability of each pattern");
  const told = h("p", { class: "big" });
  const go = async (updates, restart = false) => {
    const seen = await move({ step: "learn", updates, restart });
    drawGrid(samples, seen.samples, 8);
    drawGrid(filters, seen.filters, 6, "signed");
    drawGrid(patterns, seen.patterns, 7);
    chart.draw(seen.own, { marks: seen.wanted, top: 0.16, said: `${share(seen.mass)} of the probability lies on the patterns` });
    told.textContent = `${short(seen.updates)} updates: ${share(seen.mass)} on the patterns`;
    place.dataset.mass = seen.mass;
  };
  const run = loop(ends, 8, () => guard(() => go(10)));
  fill(place, h("div", { class: "stack" }, card(h("div", { class: "row" }, told, h("div", { class: "tools-row" }, runButton(run, "Learn"), action("100 updates", () => go(100)), action("Forget", () => go(0, true))))),
    h("div", { class: "grid three" }, h("figure", { class: "card" }, h("h2", {}, "To be learned"), patterns, h("figcaption", {}, "Bars and stripes: 14 of 512 pictures of 3×3.")),
      h("figure", { class: "card" }, h("h2", {}, "What it draws"), samples, h("figcaption", {}, "24 samples, new each time.")),
      h("figure", { class: "card" }, h("h2", {}, "What it looks for"), filters, h("figcaption", {}, "The weights of its 12 hidden units, blue below zero, red above."))),
    card(h("h2", {}, "Probability of each pattern (bars) and its share among the data (lines)"), chart.picture)));
  await go(0);
}

async function likelihoodStep(place, move, ends) {
  let curve = [];
  let best = 0;
  const chart = new Chart(ends, "Log-likelihood of the data, counted exactly", "nats a picture", "Dashed: the best that any model can do, minus the entropy of the data, −2.60. At the start: no better than independent pixels.",
    [{ label: "", color: "#0072b2", points: () => ({ x: curve.map((p) => p[0]), y: curve.map((p) => p[1]), e: curve.map(() => 0) }) }]);
  const told = h("p", { class: "big" });
  const go = async (updates, restart = false) => {
    const seen = await move({ step: "learn", updates, restart });
    curve = seen.curve;
    best = seen.best;
    chart.level = best;
    if (chart.plot && restart) { chart.plot.destroy(); chart.plot = null; }
    chart.draw();
    const nats = curve.at(-1)[1];
    told.textContent = `${short(nats)} nats, ${short(best - nats)} from the best`;
    place.dataset.nats = nats;
  };
  chart.range = (low, high) => [Math.min(low, best) - 0.3, Math.max(high, best) + 0.3];
  const run = loop(ends, 8, () => guard(() => go(20)));
  fill(place, h("div", { class: "stack" }, card(h("div", { class: "row" }, told, h("div", { class: "tools-row" }, runButton(run, "Learn"), action("200 updates", () => go(200)), action("Forget", () => go(0, true))))), chart.element));
  await go(0);
}

async function fillStep(place, move, ends) {
  const pixels = new Array(9).fill(null);
  const chart = bars(ends, "chance that each open pixel is on", 120);
  const samples = canvas("pictures drawn with your pixels held");
  const told = h("p", { class: "soft" });
  const words = { 1: "on", 0: "off", null: "open" };
  const ask = newest(async () => {
    const seen = await move({ step: "fill", pixels });
    buttons.forEach((button, i) => { button.style.setProperty("--on", pixels[i] ?? seen.exact[i]); });
    chart.draw(seen.drawn, { marks: seen.exact, top: 1, names: Array.from("123456789"), said: `chances of the nine pixels: ${seen.exact.map((p) => share(p)).join(", ")}` });
    if (seen.samples) drawGrid(samples, seen.samples, 6);
    told.textContent = `What you gave has log-probability ${short(seen.log_p)}. ${seen.updates < 200 ? "The machine has hardly learned yet: go back two steps and let it learn." : `The machine has learned for ${short(seen.updates)} updates.`}`;
    place.dataset.moves = String(Number(place.dataset.moves ?? 0) + 1);
  });
  const paint = (button, i) => { button.textContent = words[pixels[i]]; button.setAttribute("aria-label", `pixel ${i + 1}: ${words[pixels[i]]}`); button.dataset.state = words[pixels[i]]; };
  const buttons = pixels.map((_, i) => { const button = h("button", { class: "pixel", onclick: () => { pixels[i] = pixels[i] === null ? 1 : pixels[i] === 1 ? 0 : null; paint(button, i); ask(); } }); paint(button, i); return button; });
  fill(place, h("div", { class: "bench" }, card(h("h2", {}, "Your picture"), h("div", { class: "pixels", role: "group", "aria-label": "pixels" }, buttons), h("p", { class: "caption" }, "Click: on, off, open. Open pixels are as bright as they are probable.")),
    h("div", { class: "stack" }, card(h("h2", {}, "Chance to be on: 200 chains (bars), counted (lines)"), chart.picture, told), h("figure", { class: "card" }, h("h2", {}, "Drawn with your pixels held"), samples))));
  ask();
}

async function estimateStep(place, move, ends) {
  const rows = [];
  const list = h("tbody", {});
  const early = h("p", { class: "soft" });
  const temperatures = h("select", { "aria-label": "Temperatures" }, [2, 5, 10, 30, 100, 300, 1000].map((n) => h("option", { value: n }, `${n} temperatures`)));
  const go = async () => {
    const seen = await move({ step: "estimate", temperatures: Number(temperatures.value), chains: 32 });
    rows.push([Number(temperatures.value), seen]);
    const number = (one) => `${one.value.toFixed(2)} ± ${one.error === null ? "?" : one.error.toFixed(2)}`;
    fill(list, rows.slice(-8).reverse().map(([n, one]) => h("tr", {}, h("th", { scope: "row" }, `${n}`), h("td", {}, number(one.below)), h("td", {}, number(one.above)), h("td", {}, h("b", {}, one.exact.toFixed(2))))));
    const at = [...temperatures.options].findIndex((option) => option.value === temperatures.value);
    temperatures.selectedIndex = Math.min(temperatures.options.length - 1, at + 1);
    early.textContent = seen.updates < 200 ? "The machine has hardly learned yet, and what is simple is easy to estimate: go back to Learning, press Learn, and come again." : "";
    place.dataset.rows = rows.length;
  };
  fill(place, h("div", { class: "stack" }, card(h("div", { class: "tools-row" }, temperatures, action("Estimate log Z", go, { class: "primary" })),
    h("table", { class: "cells estimates" }, h("thead", {}, h("tr", {}, ["temperatures", "from below: heating up to the model", "from above: back down", "counted"].map((text) => h("th", { scope: "col" }, text)))), list), early),
  card(h("h2", {}, "Where to go from here"), h("p", {}, "A machine of 784 pixels and 500 hidden units has 2⁵⁰⁰ terms in Z. The same sandwich says what its likelihood is, and how far to trust it:"), h("pre", { tabindex: "0" }, "harmonium train --data digits --binarize threshold\nharmonium train --data moons --model gaussian-rbm\nharmonium logz RUN --method all"), h("p", {}, "What you train appears among the ", h("a", { href: "#/" }, "runs"), ", live."))));
  await go();
}

export const STEPS = [
  { title: "Energy", open: energyStep,
    text: ["A Boltzmann machine is a set of units that are on or off, and connections that like or dislike two units being on together. Every state of all units has an energy; low is good."],
    formula: "E(v, h) = − Σᵢⱼ vᵢ Wᵢⱼ hⱼ − Σᵢ bᵢ vᵢ − Σⱼ cⱼ hⱼ", todo: "switch units on and off, and find the state with the lowest energy." },
  { title: "Probability", open: lawStep,
    text: ["An energy becomes a probability: each state gets e to the minus its energy, and Z, the sum over all states, makes them add up to one. The temperature decides how much the energy counts."],
    formula: "p(v, h) = e^(−β E(v, h)) / Z", todo: "slide β to 0, where all states are equally likely, and back to 1, the machine itself." },
  { title: "Hidden units", open: hiddenStep,
    text: ["We only see the visible units. The hidden ones are there to explain them: given a picture each is on with a chance of its own, and summed over, they leave the free energy F of the picture."],
    formula: "p(hⱼ = 1 | v) = σ(cⱼ + Σᵢ vᵢ Wᵢⱼ)      p(v) = e^(−F(v)) / Z", todo: "switch the visible units and see which hidden ones answer, and how the probability of the picture changes." },
  { title: "Sampling", open: sampleStep,
    text: ["To draw from the machine nobody needs Z: draw the hidden units given the visible ones, the visible ones given the hidden ones, and again. In the long run each picture is visited as often as it is probable."],
    formula: "h ~ p(h | v),  v ~ p(v | h),  …", todo: "take single steps, then let it run, and watch the bars come down on the lines." },
  { title: "Learning", open: learnStep,
    text: ["To learn is to dig valleys where the data are and to fill them where the machine dreams: the weights follow how often two units are on together in the data, less how often in the chains."],
    formula: "ΔW = ⟨v h⟩ data − ⟨v h⟩ model", todo: "press Learn and watch the samples become bars and stripes." },
  { title: "Likelihood", open: likelihoodStep,
    text: ["How good is it? The log-likelihood says how probable the data are to the machine. It needs Z, which can be counted here: 2⁹ pictures. No model can get above the dashed line."],
    formula: "log p(v) = − F(v) − log Z", todo: "learn on, and see how close to the best possible it comes." },
  { title: "Filling in", open: fillStep,
    text: ["A density answers any question: hold the pixels that are known, and draw the others. No other model is needed for missing values."],
    formula: "p(open | known) = p(open, known) / Σ p(·, known)", todo: "set a few pixels and see what the machine makes of the rest." },
  { title: "What cannot be counted", open: estimateStep,
    text: ["Real machines have more states than there are atoms. Annealed importance sampling walks from a machine whose Z is known to ours, in small steps of temperature; walking back gives a bound from the other side."],
    formula: "E[log Ẑ up] ≤ log Z ≤ E[log Ẑ down]", todo: "estimate with few temperatures and with many, and compare with the counted value." },
];
