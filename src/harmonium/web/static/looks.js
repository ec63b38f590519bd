// The model as it is, while it learns: samples that move, filters, reconstructions, the landscape.

import { get } from "./api.js";
import { calm, fill, h, loop, runButton, short } from "./dom.js";
import { canvas, drawGrid } from "./pictures.js";
import { PlaneView } from "./plane.js";

const LEAST = 3000; // milliseconds between two looks: pictures are for eyes

/** Whether the server had no time now: it is worth trying again. */
const isBusy = (error) => error.status === 429 || error.status === 408;

export class Looks {
  constructor(name, ends) {
    Object.assign(this, { name, ends, version: "", last: 0, views: null, opening: false });
    this.element = h("section", { class: "looks grid", "aria-label": "The model as it is now" });
  }

  /** Look again where the model has changed. */
  async refresh(row) {
    if (!row.model_version || row.model_version === this.version || this.opening) return;
    const wait = this.last + LEAST - Date.now();
    if (wait > 0) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => { if (!this.ends.over) this.refresh(row); }, wait);
      return;
    }
    this.last = Date.now();
    this.version = row.model_version;
    this.opening = true;
    try {
      this.views ??= await this.open();
      for (const view of this.views) await view.look();
      this.element.dataset.version = this.version;
    } catch (error) {
      if (this.ends.over) return;
      this.views = null;
      fill(this.element, h("p", { class: "soft" }, error.message));
      if (isBusy(error)) { this.version = ""; this.timer = setTimeout(() => { if (!this.ends.over) this.refresh(row); }, LEAST); }
    } finally {
      this.opening = false;
    }
  }

  async open() {
    const { plays } = await get("plays", { run: this.name });
    const makers = { chains: this.chains, samples: this.samples, plane: this.plane, sequel: this.sequel, memory: this.memory, filters: this.filters, reconstructions: this.rebuilt };
    const views = plays.filter((play) => makers[play.name]).map((play) => makers[play.name].call(this, play));
    fill(this.element, views.map((view) => view.element));
    return views;
  }

  look(play) { return get("look", { run: this.name, play }); }

  /** Look again and again, as often as the server has time for all who watch. */
  moving(play, draw) {
    const look = async () => { const found = await this.look(play); draw(found); return found.again; };
    const run = loop(this.ends, 4, async () => {
      try { const again = await look(); await new Promise((done) => setTimeout(done, 1000 * again - 250)); } catch (error) { return isBusy(error); }
    });
    let begun = false;
    return { run, look: async () => { if (!run.on) await look(); if (!begun && !calm.matches) run.start(); begun = true; } };
  }

  chains(play) {
    const picture = canvas("samples of the model");
    const steps = h("span", { class: "soft numbers" });
    const { run, look } = this.moving("chains", (found) => { drawGrid(picture, found.images, 5); steps.textContent = `step ${short(found.steps)}`; });
    const caption = `25 chains from ${play.opening.origin}${play.opening.means ? "; shown are the means of the pixels" : ""}. Nothing is selected.`;
    return { element: h("figure", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Samples"), steps, runButton(run, "Move")), picture, h("figcaption", {}, caption)), look };
  }

  samples() {
    const picture = canvas("samples of the model");
    return { element: h("figure", { class: "card" }, h("h2", {}, "Samples"), picture, h("figcaption", {}, "Drawn anew with each checkpoint. Nothing is selected.")),
      look: async () => { drawGrid(picture, (await this.look("samples")).images, 5); } };
  }

  plane(play) {
    const view = new PlaneView(play.opening, this.ends);
    const { run, look } = this.moving("plane", (found) => view.draw(found));
    return { element: h("figure", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Energy landscape and chains"), runButton(run, "Move")), view.element,
      h("figcaption", {}, "F(x): dark is low, where the model expects data. Orange: data. White: chains.")), look };
  }

  sequel(play) {
    const picture = canvas("a film that the model draws, frame by frame");
    const counted = h("span", { class: "soft numbers" });
    const { run, look } = this.moving("sequel", (found) => { drawGrid(picture, found.images, 1); counted.textContent = `frame ${short(found.frame)}`; });
    return { element: h("figure", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Film"), counted, runButton(run, "Move")), picture,
      h("figcaption", {}, `The first ${play.opening.given} frames are those of a held-out film; each one after is drawn given those before. Begun anew with each checkpoint.`)), look };
  }

  memory(play) {
    const picture = canvas("the patterns that are stored");
    const { patterns, n_units: n } = play.opening;
    return {
      element: h("figure", { class: "card" }, h("h2", {}, "What is stored"), picture, h("figcaption", {}, `${patterns.n} patterns in ${n} units.`)),
      look: async () => { drawGrid(picture, patterns, Math.min(5, patterns.n)); },
    };
  }

  filters() {
    const picture = canvas("filters: the weights of hidden units as images");
    const caption = h("figcaption", {});
    return {
      element: h("figure", { class: "card" }, h("h2", {}, "Filters"), picture, caption),
      look: async () => {
        const found = await this.look("filters");
        drawGrid(picture, found.images, 8, found.images.shape[0] === 3 ? "gray" : "signed");
        caption.textContent = `The weights of ${found.images.n} of ${found.of} hidden units, the largest first, blue −${short(found.top)} to red ${short(found.top)}.`;
      },
    };
  }

  rebuilt() {
    const [above, below] = [canvas("held-out samples"), canvas("their reconstructions")];
    return {
      element: h("figure", { class: "card" }, h("h2", {}, "Reconstructions"), h("div", { class: "pairs" }, above, below),
        h("figcaption", {}, "Held-out samples, and below them the means of the pixels given the means of the hidden units.")),
      look: async () => {
        const found = await this.look("reconstructions");
        drawGrid(above, found.images, 6);
        drawGrid(below, found.rebuilt, 6);
      },
    };
  }
}
