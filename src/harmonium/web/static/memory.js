// A memory: store what is drawn, spoil it, watch it come back with its energy.

import { fill, h, loop, runButton, share, short, toast } from "./dom.js";
import { action, toolButtons } from "./controls.js";
import { base64, bytes, color, onScheme, strip } from "./pictures.js";
import { Sketch } from "./sketch.js";

export function open(opening, move, ends) {
  const sheet = new Sketch(opening.patterns.shape, () => { path = []; run.stop(); see({ action: "look" }).catch(() => {}); }, { masks: false });
  let path = [], playing = 0;
  const said = h("p", { class: "big" });
  const near = h("p", { class: "soft" });
  const chart = h("canvas", { class: "gauge energy", role: "img", "aria-label": "energy along the recall" });
  const stored = h("div", {});
  const counted = h("span", { class: "soft" });
  const cold = h("input", { type: "range", min: 0, max: 100, value: 0, "aria-label": "Temperature" });
  const heat = h("output", {}, "0");
  cold.addEventListener("input", () => { heat.textContent = short(Number(cold.value) / 25); });
  const beta = () => (Number(cold.value) ? { beta: 25 / Number(cold.value) } : {});
  const share_ = h("input", { type: "range", min: 5, max: 50, step: 5, value: 25, "aria-label": "Share of pixels to spoil" });
  const spoiled = h("output", {}, "25 %");
  share_.addEventListener("input", () => { spoiled.textContent = `${share_.value} %`; });

  const see = async (values, animate = false) => {
    const seen = await move({ x: base64(sheet.values), ...values });
    const size = sheet.values.length;
    const pixels = bytes(seen.images.pixels);
    const mine = ++playing;
    const quick = !animate || seen.images.n < 2;
    for (let i = quick ? seen.images.n - 1 : 0; i < seen.images.n; i += 1) {
      if (mine !== playing || ends.over) return seen;
      sheet.set(pixels.slice(i * size, (i + 1) * size), true);
      if (!(i === 0 && path.length)) path.push(seen.energies[i]);
      draw();
      if (!quick) await new Promise((done) => setTimeout(done, 45));
    }
    near.textContent = `Nearest to pattern ${seen.nearest + 1}: overlap ${seen.overlaps[seen.nearest].toFixed(2)}${seen.overlaps[seen.nearest] > 0.999 ? ", recalled" : ""}.`;
    counted.textContent = `${seen.patterns.n} in ${opening.n_units} units (${share(seen.patterns.n / opening.n_units)})`;
    fill(stored, strip(seen.patterns, "pattern", (i, values_) => { path = []; sheet.set(values_, true); see({ action: "look" }).catch(() => {}); }));
    element.dataset.moves = String(Number(element.dataset.moves ?? 0) + 1);
    element.dataset.overlap = seen.overlaps[seen.nearest];
    return seen;
  };
  const draw = () => {
    if (!path.length) return;
    said.textContent = `E = ${short(path.at(-1))}`;
    const [wide, tall] = [chart.clientWidth || 300, 90];
    chart.width = 2 * wide;
    chart.height = 2 * tall;
    const c = chart.getContext("2d");
    c.scale(2, 2);
    const [low, high] = [Math.min(...path), Math.max(...path)];
    const at = (i) => [8 + (i / Math.max(1, path.length - 1)) * (wide - 16), 10 + ((high - path[i]) / (high - low || 1)) * (tall - 22)];
    c.strokeStyle = color("accent");
    c.lineWidth = 2;
    c.beginPath();
    path.forEach((_, i) => c.lineTo(...at(i)));
    c.stroke();
    c.fillStyle = color("accent");
    c.beginPath();
    c.arc(...at(path.length - 1), 4.5, 0, 7);
    c.fill();
    chart.setAttribute("aria-label", `energy: from ${short(path[0])} to ${short(path.at(-1))}`);
  };
  const run = loop(ends, 20, async () => {
    try { const seen = await see({ action: "recall", ...beta() }, true); if (seen.rests && !Number(cold.value)) return false; } catch (error) { toast(error.message, true); return false; }
  });
  const element = h("div", { class: "bench" },
    h("div", {}, sheet.canvas,
      h("div", { class: "tools-row" }, toolButtons(sheet, [["ink", "Draw"], ["erase", "Erase"]]), h("button", { onclick: () => { path = []; sheet.clear(); } }, "Clear")),
      h("div", { class: "card" }, h("div", { class: "tools-row" }, action("Store it", () => { path = []; return see({ action: "store" }); }), action("Spoil it", () => { path = []; run.stop(); return see({ action: "spoil", share: Number(share_.value) / 100 }); }), runButton(run, "Recall"), action("One sweep", () => see({ action: "recall", ...beta() }, true))),
        h("div", { class: "sliders" }, h("label", { class: "field" }, h("span", {}, "Share of pixels to spoil ", spoiled), share_), h("label", { class: "field" }, h("span", {}, "Temperature ", heat), cold)))),
    h("div", { class: "stack" },
      h("figure", { class: "card" }, h("h2", {}, "Energy"), said, chart, near, h("figcaption", {}, "At temperature 0 no unit that changes raises the energy: recall runs downhill and rests in a valley.")),
      h("section", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "What is stored"), counted), stored, h("p", { class: "caption" }, "Pick a pattern, spoil it, and recall it. What you store here is kept for this play only; the run stays as it is."))));
  onScheme(ends, draw);
  sheet.set(bytes(opening.patterns.pixels).slice(0, sheet.values.length), true);
  see({ action: "look" }).catch((error) => toast(error.message, true));
  return { element, pause: () => run.stop(), shown: draw };
}
