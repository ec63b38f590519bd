// A sheet to draw on: with the mouse, a finger, the keyboard, or an image that is dropped on it.

import { h, toast } from "./dom.js";
import { color, imageData } from "./pictures.js";

const MAX_FILE = 20e6;

/** Values 0..255 on a small grid, and for each pixel whether it is known. `onchange` hears of every stroke. */
export class Sketch {
  constructor(shape, onchange, { masks = true } = {}) {
    const [channels, rows, columns] = shape;
    Object.assign(this, { shape, channels, rows, columns, onchange, masks, tool: "ink", cursor: null });
    this.values = new Uint8Array(channels * rows * columns);
    this.known = new Uint8Array(rows * columns).fill(255);
    this.scale = Math.max(1, Math.round(380 / Math.max(rows, columns)));
    this.canvas = h("canvas", {
      class: "sketch", width: columns * this.scale, height: rows * this.scale, tabindex: "0", role: "application",
      "aria-label": "Sheet to draw on. Arrow keys move, space draws, Delete erases.",
    });
    this.small = document.createElement("canvas");
    this.small.width = columns;
    this.small.height = rows;
    this.listen();
    this.draw();
  }

  listen() {
    let last = null;
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [((event.clientX - box.left) / box.width) * this.columns, ((event.clientY - box.top) / box.height) * this.rows];
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      last = place(event);
      this.cursor = null;
      this.stroke(last, last);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (last === null) return;
      const now = place(event);
      this.stroke(last, now);
      last = now;
    });
    for (const name of ["pointerup", "pointercancel"]) this.canvas.addEventListener(name, () => { last = null; });
    this.canvas.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      this.cursor ??= [Math.floor(this.columns / 2), Math.floor(this.rows / 2)];
      if (move) {
        this.cursor = [Math.min(this.columns - 1, Math.max(0, this.cursor[0] + move[0])), Math.min(this.rows - 1, Math.max(0, this.cursor[1] + move[1]))];
        this.draw();
      } else if (event.key === " " || event.key === "Delete" || event.key === "Backspace") {
        this.dot(this.cursor[0] + 0.5, this.cursor[1] + 0.5, event.key === " " ? this.tool : "erase", 0.4);
        this.changed();
      } else return;
      event.preventDefault();
    });
    this.canvas.addEventListener("blur", () => { this.cursor = null; this.draw(); });
    for (const name of ["dragover", "dragleave", "drop"]) this.canvas.addEventListener(name, (event) => {
      event.preventDefault();
      this.canvas.classList.toggle("drop", name === "dragover");
      if (name === "drop" && event.dataTransfer.files[0]) this.take(event.dataTransfer.files[0]);
    });
  }

  stroke(from, to) {
    const n = Math.max(1, Math.ceil(2 * Math.hypot(to[0] - from[0], to[1] - from[1])));
    const radius = this.tool === "forget" ? Math.max(0.8, this.rows / 14) : Math.max(0.45, this.rows / 26);
    for (let i = 1; i <= n; i += 1) this.dot(from[0] + ((to[0] - from[0]) * i) / n, from[1] + ((to[1] - from[1]) * i) / n, this.tool, radius);
    this.changed();
  }

  dot(x, y, tool, radius) {
    const reach = Math.ceil(radius);
    for (let r = Math.floor(y) - reach; r <= Math.floor(y) + reach; r += 1) for (let c = Math.floor(x) - reach; c <= Math.floor(x) + reach; c += 1) {
      if (r < 0 || c < 0 || r >= this.rows || c >= this.columns || Math.hypot(c + 0.5 - x, r + 0.5 - y) > radius + 0.5) continue;
      const i = r * this.columns + c;
      if (tool === "forget") this.known[i] = 0;
      else {
        this.known[i] = 255;
        for (let k = 0; k < this.channels; k += 1) this.values[k * this.rows * this.columns + i] = tool === "ink" ? 255 : 0;
      }
    }
  }

  /** Mark pixels unknown by a rule of their row and column in [0, 1). */
  forget(rule) {
    for (let r = 0; r < this.rows; r += 1) for (let c = 0; c < this.columns; c += 1) this.known[r * this.columns + c] = rule(r / this.rows, c / this.columns) ? 0 : 255;
    this.changed();
  }

  set(values, quiet = false) {
    this.values.set(values);
    this.draw();
    if (!quiet) this.onchange();
  }

  clear() {
    this.values.fill(0);
    this.known.fill(255);
    this.changed();
  }

  changed() { this.draw(); this.onchange(); }

  get hasUnknown() { return this.known.some((v) => v === 0); }

  draw() {
    const context = this.canvas.getContext("2d");
    this.small.getContext("2d").putImageData(imageData(this.values, this.shape), 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.small, 0, 0, this.canvas.width, this.canvas.height);
    const s = this.scale;
    if (this.masks) {
      context.fillStyle = "rgba(70, 150, 215, .42)";
      for (let i = 0; i < this.known.length; i += 1) if (!this.known[i]) context.fillRect((i % this.columns) * s, Math.floor(i / this.columns) * s, s, s);
    }
    if (this.cursor) {
      context.strokeStyle = color("accent");
      context.lineWidth = 3;
      context.strokeRect(this.cursor[0] * s + 1, this.cursor[1] * s + 1, s - 2, s - 2);
    }
  }

  /** Take an image from a file: fitted into the sheet, in gray where the model sees gray. It never leaves this page. */
  async take(file) {
    if (!file.type.startsWith("image/")) return toast(`${file.name} is not an image.`, true);
    if (file.size > MAX_FILE) return toast(`${file.name} is larger than 20 MB.`, true);
    let image;
    try { image = await createImageBitmap(file); } catch { return toast(`${file.name} cannot be read as an image.`, true); }
    const sheet = document.createElement("canvas");
    sheet.width = this.columns;
    sheet.height = this.rows;
    const context = sheet.getContext("2d", { willReadFrequently: true });
    const scale = Math.min(this.columns / image.width, this.rows / image.height);
    const [wide, tall] = [image.width * scale, image.height * scale];
    context.imageSmoothingQuality = "high";
    context.drawImage(image, (this.columns - wide) / 2, (this.rows - tall) / 2, wide, tall);
    const { data } = context.getImageData(0, 0, this.columns, this.rows);
    const n = this.rows * this.columns;
    for (let i = 0; i < n; i += 1) {
      const [red, green, blue] = data.slice(4 * i, 4 * i + 3);
      if (this.channels === 3) [red, green, blue].forEach((v, k) => { this.values[k * n + i] = v; });
      else this.values[i] = Math.round(0.299 * red + 0.587 * green + 0.114 * blue);
    }
    const edge = [0, this.columns - 1, n - this.columns, n - 1].reduce((sum, i) => sum + this.values[i], 0) / 4;
    if (this.channels === 1 && edge > 140) for (let i = 0; i < n; i += 1) this.values[i] = 255 - this.values[i];
    this.known.fill(255);
    this.changed();
  }
}
