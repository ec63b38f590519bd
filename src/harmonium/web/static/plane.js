// The plane: a landscape of free energy, data, and chains on it.

import { h, short } from "./dom.js";
import { bytes, imageData } from "./pictures.js";

const SIZE = 480;

export class PlaneView {
  constructor(opening) {
    this.opening = opening;
    this.canvas = h("canvas", { class: "picture plane", width: SIZE, height: SIZE, role: "img", "aria-label": "free energy over the plane with data and chains" });
    this.element = h("div", { class: "plane-view" }, this.canvas);
    this.ground = null;
  }

  /** The place of a point on the canvas. */
  at([x, y]) {
    const [left, right, bottom, top] = this.opening.window;
    return [((x - left) / (right - left)) * SIZE, ((top - y) / (top - bottom)) * SIZE];
  }

  draw(seen, showData = true) {
    if (seen.landscape) {
      const { n, values, low, cut } = seen.landscape;
      this.ground = document.createElement("canvas");
      this.ground.width = this.ground.height = n;
      this.ground.getContext("2d").putImageData(imageData(bytes(values), [1, n, n], 0, "height"), 0, 0);
      this.canvas.setAttribute("aria-label", `free energy over the plane, from ${short(low)} (dark) to ${short(low + cut)} nats and above (pale), with ${this.opening.data.length} data points and ${seen.points.length} chains`);
    }
    const context = this.canvas.getContext("2d");
    context.imageSmoothingEnabled = true;
    context.clearRect(0, 0, SIZE, SIZE);
    if (this.ground) context.drawImage(this.ground, 0, 0, SIZE, SIZE);
    const dots = (points, size, inner, outer) => {
      context.fillStyle = inner;
      context.strokeStyle = outer;
      context.lineWidth = 1;
      for (const point of points) {
        const [x, y] = this.at(point);
        context.beginPath();
        context.arc(x, y, size, 0, 7);
        context.fill();
        if (outer) context.stroke();
      }
    };
    if (showData) dots(this.opening.data, 1.8, "#f0863ccc", null);
    dots(seen.points, 2.6, "#ffffff", "#10243a");
    this.last = seen;
  }
}
