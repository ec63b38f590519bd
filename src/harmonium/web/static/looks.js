// The model as it is, while it learns: samples that move, filters, reconstructions, the landscape.

import { get, newSession, post } from "./api.js";
import { calm, fill, h, loop, runButton, short } from "./dom.js";
import { canvas, drawGrid } from "./pictures.js";
import { PlaneView } from "./plane.js";

const LEAST = 3000; // milliseconds between two looks: pictures are for eyes

export class Looks {
  constructor(name, ends) {
    Object.assign(this, { name, ends, version: "", last: 0, views: null, opening: false });
    this.element = h("section", { class: "looks grid", "aria-label": "The model as it is now" });
    this.session = newSession();
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
    } finally {
      this.opening = false;
    }
  }

  async open() {
    const { plays } = await get("plays", { run: this.name });
    const makers = { chains: this.chains, samples: this.chains, plane: this.plane, filters: this.filters, reconstructions: this.rebuilt };
    const views = plays.filter((play) => makers[play.name]).map((play) => makers[play.name].call(this, play));
    fill(this.element, views.map((view) => view.element));
    return views;
  }

  look(play) { return get("look", { run: this.name, play }); }

  chains(play) {
    const picture = canvas("samples of the model");
    const steps = h("span", { class: "soft numbers" });
    const move = async (n) => {
      const found = await post("play", { run: this.name, play: play.name, session: this.session, move: { steps: n, n: 25, ...(play.opening?.means ? { means: true } : {}) } });
      drawGrid(picture, found.images, 5);
      if (found.steps !== undefined) steps.textContent = `step ${short(found.steps)}`;
    };
    const run = loop(this.ends, 4, async () => { try { await move(1); } catch { return false; } });
    let begun = false;
    const button = runButton(run, "Move");
    const caption = play.name === "chains"
      ? `25 chains from ${play.opening.origin}${play.opening.means ? "; shown are the means of the pixels" : ""}. Nothing is selected.`
      : "Samples, drawn anew with each checkpoint.";
    return {
      element: h("figure", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Samples"), steps, play.name === "chains" ? button : ""), picture, h("figcaption", {}, caption)),
      look: async () => {
        await move(begun ? 5 : 100);
        if (!begun && play.name === "chains" && !calm.matches) run.start();
        begun = true;
      },
    };
  }

  plane(play) {
    const view = new PlaneView(play.opening, this.ends);
    const move = (values) => post("play", { run: this.name, play: "plane", session: this.session, move: { n: 300, ...values } });
    const run = loop(this.ends, 4, async () => { try { view.draw(await move({ steps: 1 })); } catch { return false; } });
    let begun = false;
    return {
      element: h("figure", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Energy landscape and chains"), runButton(run, "Move")), view.element,
        h("figcaption", {}, "F(x): dark is low, where the model expects data. Orange: data. White: chains.")),
      look: async () => {
        view.draw(await move({ steps: begun ? 1 : 50, landscape: true }));
        if (!begun && !calm.matches) run.start();
        begun = true;
      },
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
