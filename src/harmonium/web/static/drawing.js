// Draw: the hidden units light up, energy and classes change, the rest is filled in.

import { fill, h, loop, runButton, share, short, toast } from "./dom.js";
import { action, newest, temperature, toolButtons } from "./controls.js";
import { base64, bytes, canvas, color, drawGrid, onScheme, strip } from "./pictures.js";
import { Sketch } from "./sketch.js";

const HALVES = [["left half", (r, c) => c < 0.5], ["right half", (r, c) => c >= 0.5], ["upper half", (r) => r < 0.5], ["lower half", (r) => r >= 0.5], ["all of it", () => true]];

export function open(opening, move, ends) {
  const look = newest(async () => show(await move(request())));
  const sheet = new Sketch(opening.examples.shape, () => look(), { masks: opening.can_fill });
  const heat = temperature();
  const label = opening.can_hold_label ? h("select", { "aria-label": "Hold the label", onchange: () => look() }, h("option", { value: "" }, "label: free")) : null;
  const request = (more = {}) => ({
    x: base64(sheet.values), ...(label?.value ? { label: Number(label.value) } : {}), ...more,
  });
  const filling = (more) => request({ known: base64(spread(sheet)), beta: heat.beta(), ...more });
  const step = async (n, fresh = false) => {
    if (!sheet.hasUnknown && !label?.value && fresh) sheet.forget(() => true);
    const seen = await move(filling({ steps: n, fresh }));
    sheet.set(bytes(seen.image.pixels), true);
    show(seen);
    steps += seen.steps;
    counted.textContent = `${short(steps)} steps`;
  };
  let steps = 0;
  const counted = h("span", { class: "soft numbers" });
  const run = loop(ends, 12, async () => { try { await step(1); } catch (error) { toast(error.message, true); return false; } });

  const tools = toolButtons(sheet, [["ink", "Draw"], ["erase", "Erase"], ...(opening.can_fill ? [["forget", "Leave open"]] : [])]);
  const file = h("input", { type: "file", accept: "image/*", hidden: true, onchange: (event) => { if (event.target.files[0]) sheet.take(event.target.files[0]); } });
  const halves = h("select", { "aria-label": "Leave a part open", onchange: (event) => {
    const half = HALVES[Number(event.target.value)];
    if (half) sheet.forget(half[1]);
    event.target.value = "";
  } }, h("option", { value: "" }, "open a part …"), HALVES.map(([text], i) => h("option", { value: i }, text)));
  const examples = strip(opening.examples, "sample", (i, values) => { sheet.known.fill(255); sheet.set(values); steps = 0; }, opening.labels);

  const energy = h("section", { class: "card", hidden: true }, h("h2", {}, "Free energy"), h("p", { class: "big", "data-energy": "" }), h("canvas", { class: "gauge", role: "img", "aria-label": "free energy beside that of data" }),
    h("p", { class: "caption" }, "Lower is more probable. The band holds nine tenths of the held-out samples."));
  const classes = h("section", { class: "card", hidden: true }, h("h2", {}, "Classes"), h("ul", { class: "bars" }));
  const hidden = h("section", { class: "card", hidden: true });
  const mean = canvas("what the hidden units expect of the pixels");
  const expected = h("figure", { class: "card", hidden: true }, h("h2", {}, "Expected pixels"), mean, h("figcaption", {}, "The mean of each pixel, given the means of the hidden units."));

  const show = (seen) => {
    element.dataset.moves = String(Number(element.dataset.moves ?? 0) + 1);
    if (seen.classes) showClasses(classes, seen.classes);
    if (seen.hidden) showHidden(hidden, seen.hidden);
    if (seen.mean) { expected.hidden = false; drawGrid(mean, seen.mean, 1); }
    if (seen.free_energy !== undefined) showEnergy(energy, seen.free_energy, opening.free_energies); // last: by now its width is known
    if (label && label.options.length === 1 && seen.classes) label.append(...seen.classes.map((_, i) => h("option", { value: i }, `label: ${i}`)));
  };
  const element = h("div", { class: "bench" },
    h("div", {}, sheet.canvas,
      h("div", { class: "tools-row" }, tools, opening.can_fill ? halves : "", h("button", { onclick: () => { run.stop(); sheet.clear(); steps = 0; counted.textContent = ""; } }, "Clear"), h("button", { onclick: () => file.click() }, "Image …"), file),
      opening.can_fill ? h("div", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Fill in"), counted),
        h("p", { class: "caption" }, "Blue pixels are open: chains draw them given the others. With none open, the whole drawing moves."),
        h("div", { class: "tools-row" }, action("Fill in", () => step(20, true), { class: "primary" }), action("One step", () => step(1)), quiet(runButton(run)), label),
        opening.tempered ? heat.element : "") : "",
      h("div", { class: "card" }, h("h2", {}, "Begin with a sample"), examples)),
    h("div", { class: "stack" }, h("div", { class: "two" }, energy, classes, expected), hidden));
  onScheme(ends, () => look());
  look();
  return { element, pause: () => run.stop(), updated: () => look() };
}

function quiet(button) { button.classList.remove("primary"); return button; }

/** The mask for all channels. */
function spread(sheet) {
  const mask = new Uint8Array(sheet.values.length);
  for (let k = 0; k < sheet.channels; k += 1) mask.set(sheet.known, k * sheet.known.length);
  return mask;
}

function showEnergy(place, value, band) {
  place.hidden = false;
  place.querySelector("[data-energy]").textContent = `F = ${short(value)}`;
  if (!band) return;
  const picture = place.querySelector("canvas");
  const [wide, tall] = [picture.clientWidth || 260, 64];
  picture.width = 2 * wide;
  picture.height = 2 * tall;
  const c = picture.getContext("2d");
  c.scale(2, 2);
  const width = Math.max(1e-6, band[2] - band[0]);
  const [low, high] = [Math.min(value, band[0] - 0.6 * width) - 0.1 * width, Math.max(value, band[2] + 0.6 * width) + 0.1 * width];
  const at = (v) => 8 + ((v - low) / (high - low)) * (wide - 16);
  c.fillStyle = color("raised");
  c.fillRect(0, 24, wide, 10);
  c.fillStyle = color("tint");
  c.fillRect(at(band[0]), 22, at(band[2]) - at(band[0]), 14);
  c.fillStyle = color("accent");
  c.beginPath();
  c.arc(at(value), 29, 7, 0, 7);
  c.fill();
  c.fillStyle = color("soft");
  c.font = "12px system-ui, sans-serif";
  c.textAlign = "center";
  c.fillText("data", at((band[0] + band[2]) / 2), 54);
  picture.setAttribute("aria-label", `free energy ${short(value)}; nine tenths of the data lie between ${short(band[0])} and ${short(band[2])}`);
}

export function showClasses(place, classes) {
  place.hidden = false;
  const best = classes.indexOf(Math.max(...classes));
  fill(place.querySelector("ul"), classes.map((p, i) => h("li", { class: i === best ? "best" : "" }, h("span", {}, String(i)), h("meter", { min: 0, max: 1, value: p, "aria-label": `class ${i}` }), h("output", {}, share(p)))));
}

export function showHidden(place, layers) {
  place.hidden = false;
  const columns = Math.ceil(Math.sqrt(2.6 * Math.max(...Object.values(layers).map((layer) => layer.n)))); // units of all layers are as large
  fill(place, h("h2", {}, "Hidden units"), Object.entries(layers).map(([name, layer]) => {
    const values = bytes(layer.values);
    const picture = canvas(`${layer.n} hidden units; ${values.filter((v) => v > 127).length} are on`);
    const [cell, gap] = [10, 2];
    picture.width = columns * (cell + gap) - gap;
    picture.height = Math.ceil(layer.n / columns) * (cell + gap) - gap;
    const c = picture.getContext("2d");
    const [off, on] = [color("raised"), color("accent")];
    values.forEach((v, i) => {
      const [x, y] = [(i % columns) * (cell + gap), Math.floor(i / columns) * (cell + gap)];
      c.globalAlpha = 1;
      c.fillStyle = off;
      c.fillRect(x, y, cell, cell);
      c.globalAlpha = v / 255;
      c.fillStyle = on;
      c.fillRect(x, y, cell, cell);
    });
    return h("figure", { class: "units" }, picture, h("figcaption", {}, `${Object.keys(layers).length > 1 ? `${name.replace("_", " ")}: ` : ""}${layer.n < layer.of ? `${layer.n} of ` : ""}${layer.of} units, bright where they are on${layer.high > 1 || layer.low < 0 ? ` (${short(layer.low)} to ${short(layer.high)})` : ""}.`));
  }));
}
