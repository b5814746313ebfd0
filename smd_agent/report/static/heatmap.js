// A picture of a row for each tensor and a column for each step, painted pixel by pixel.
const ROW = 17;
const LOWEST = 40;
const TALLEST = 430;
const NAMED = 11;
const MOST_NAMED = 60;

class Heatmap {
  constructor(parent, grid) {
    this.grid = grid;
    this.rows = grid.names.map((_, row) => row);
    this.labels = labelsOf(grid.names);
    this.cursor = null;
    this.dirty = true;
    this.visible = false;
    const keys = "Arrow keys move, Enter shows the tensor, plus and minus zoom, 0 shows all steps.";
    const label = `${grid.title}: ${grid.names.length} tensors. ${keys}`;
    this.canvas = made("canvas", { tabIndex: 0, role: "application", "aria-label": label });
    this.line = made("div", { className: "line", hidden: true });
    this.drag = made("div", { className: "drag", hidden: true });
    this.plot = made("div", { className: "plot" }, this.canvas, this.line, this.drag);
    this.status = made("output", { className: "name", "aria-live": "polite" });
    this.legend = made("div", { className: "legend" });
    this.element = parent;
    parent.append(this.plot, made("div", { className: "under" }, this.status, this.legend));
    this.marks = severities(grid);
    this.listen();
    this.restyle();
  }

  restyle() {
    this.colors = palette(this.grid);
    drawLegend(this.legend, this.grid);
    this.resize();
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    this.gutter = axis.gutter();
    this.width = Math.max(this.plot.clientWidth, 80);
    const tallest = this.rows.length <= MOST_NAMED ? Math.max(TALLEST, this.rows.length * (NAMED + 1)) : TALLEST;
    this.height = Math.round(Math.min(Math.max(this.rows.length * ROW, LOWEST), tallest));
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    this.ratio = ratio;
    this.invalidate();
  }

  filter(text) {
    const wanted = text.toLowerCase();
    const all = this.grid.names.map((_, row) => row);
    this.rows = all.filter((row) => this.grid.names[row].toLowerCase().includes(wanted));
    this.element.hidden = this.rows.length === 0;
    this.cursor = null;
    this.resize();
  }

  // Only what is on the screen is painted at once.
  invalidate() {
    this.dirty = true;
    if (this.visible) repaint();
  }

  paint() {
    this.dirty = false;
    const context = this.canvas.getContext("2d");
    const left = Math.round(this.gutter * this.ratio);
    const width = this.canvas.width - left;
    const height = this.canvas.height;
    context.clearRect(0, 0, this.canvas.width, height);
    if (this.rows.length && width > 0) context.putImageData(this.pixels(width, height), left, 0);
    this.paintNames(context, left);
    this.paintMark(context, left, width);
    this.element.dataset.low = axis.low;
    this.element.dataset.high = axis.high;
  }

  // Of several rows or columns in a pixel the largest code is seen; NaN and Inf take two pixels at least.
  pixels(width, height) {
    const { grid, rows, colors } = this;
    const image = new ImageData(width, height);
    const words = new Uint32Array(image.data.buffer);
    const count = grid.steps.length;
    const [starts, ends] = this.columns(width);
    const own = new Uint8Array(count);
    let before = new Uint8Array(width);
    let codes = new Uint8Array(width);
    let last = -1;
    for (let y = 0; y < height; y++) {
      const first = Math.floor((y * rows.length) / height);
      const end = Math.max(Math.floor(((y + 1) * rows.length) / height), first + 1);
      if (first === last && end === first + 1) {
        words.copyWithin(y * width, (y - 1) * width, y * width);
        continue;
      }
      last = first;
      own.fill(0);
      for (let r = first; r < end; r++) {
        const offset = rows[r] * count;
        for (let c = starts[0] < 0 ? 0 : starts[0]; c < ends[width - 1]; c++) if (grid.bytes[offset + c] > own[c]) own[c] = grid.bytes[offset + c];
      }
      const small = rows.length * 2 > height;
      for (let x = 0; x < width; x++) {
        let code = 0;
        for (let c = starts[x]; c < ends[x]; c++) if (c >= 0 && own[c] > code) code = own[c];
        codes[x] = code;
        if (x > 0 && codes[x - 1] >= 254 && starts[x - 1] !== starts[x]) code = Math.max(code, codes[x - 1]);
        if (small && before[x] >= 254) code = Math.max(code, before[x]);
        words[y * width + x] = colors[code];
      }
      [before, codes] = [codes, before];
    }
    return image;
  }

  // For each pixel the first column that it shows, and the one after the last.
  columns(width) {
    const starts = new Int32Array(width);
    const ends = new Int32Array(width);
    const span = axis.high - axis.low;
    const beyond = endOf(this.grid, this.grid.steps.length - 1);
    for (let x = 0; x < width; x++) {
      const from = axis.low + (span * x) / width;
      const to = axis.low + (span * (x + 1)) / width;
      starts[x] = columnOf(this.grid, from);
      const last = columnOf(this.grid, to - span / width / 1e6);
      ends[x] = from >= beyond ? starts[x] : Math.max(last, starts[x]) + 1;
    }
    return [starts, ends];
  }

  paintNames(context, left) {
    const room = this.canvas.height / Math.max(this.rows.length, 1);
    const named = this.gutter > 100 && room >= NAMED * this.ratio;
    context.font = `${Math.min(12, room / this.ratio - 2)}px ui-monospace, Menlo, Consolas, monospace`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    if (named) context.setTransform(1, 0, 0, 1, 0, 0);
    context.font = context.font.replace(/^[\d.]+/, (size) => String(size * this.ratio));
    this.rows.forEach((row, place) => {
      const severity = this.marks[row];
      const middle = (place + 0.5) * room;
      if (severity) {
        context.fillStyle = styleColor(severity);
        const tall = Math.max(room - 2, 2 * this.ratio);
        context.fillRect(left - 5 * this.ratio, middle - tall / 2, 4 * this.ratio, tall);
      }
      if (named) {
        context.fillStyle = styleColor(severity === "problem" ? "problem" : "ink");
        context.fillText(fitting(context, this.labels[row], left - 12 * this.ratio), left - 9 * this.ratio, middle);
      }
    });
    if (this.cursor) {
      context.strokeStyle = styleColor("ink");
      context.lineWidth = this.ratio;
      const top = this.rows.indexOf(this.cursor.row) * room;
      context.strokeRect(left + 0.5, top + 0.5, this.canvas.width - left - 1, Math.max(room - 1, 2 * this.ratio));
    }
  }

  paintMark(context, left, width) {
    const step = firstBadStep();
    if (step === null || step < axis.low || step > axis.high) return;
    const at = left + ((step - axis.low) / (axis.high - axis.low)) * width;
    context.strokeStyle = styleColor("problem");
    context.setLineDash([4 * this.ratio, 3 * this.ratio]);
    context.beginPath();
    context.moveTo(at, 0);
    context.lineTo(at, this.canvas.height);
    context.stroke();
    context.setLineDash([]);
  }

  stepAt(x) {
    return axis.low + ((x - this.gutter) / (this.width - this.gutter)) * (axis.high - axis.low);
  }

  // The row and the column below a place of the canvas.
  cellAt(x, y) {
    const place = Math.min(Math.max(Math.floor((y / this.height) * this.rows.length), 0), this.rows.length - 1);
    if (!this.rows.length) return null;
    const column = Math.min(Math.max(columnOf(this.grid, this.stepAt(Math.max(x, this.gutter))), 0), this.grid.steps.length - 1);
    return { row: this.rows[place], column };
  }

  tell(cell) {
    this.status.textContent = cell
      ? `${this.grid.names[cell.row]} – ${stepText(this.grid.steps[cell.column])}: ${this.wordsAt(cell)}`
      : "";
  }

  wordsAt({ row, column }) {
    const value = valueAt(this.grid, row, column);
    if (value === null) return this.grid.key === "non_finite" ? "none" : "not saved";
    const shown = this.grid.bits === 16 ? numberText(value) : `about ${numberText(value, 2)}`;
    return this.grid.share && Number.isFinite(value) ? `${numberText(value * 100, 3)} %` : shown;
  }

  listen() {
    const { canvas } = this;
    let start = null;
    canvas.addEventListener("pointerdown", (event) => {
      start = event.offsetX;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const cell = this.cellAt(event.offsetX, event.offsetY);
      this.tell(cell);
      axis.point(event.offsetX >= this.gutter ? this.stepAt(event.offsetX) : null);
      if (start === null) return;
      const [low, high] = [Math.max(Math.min(start, event.offsetX), this.gutter), Math.max(start, event.offsetX)];
      this.drag.hidden = high - low < 5;
      this.drag.style.left = `${low}px`;
      this.drag.style.width = `${high - low}px`;
    });
    canvas.addEventListener("pointerup", (event) => {
      const from = start;
      start = null;
      this.drag.hidden = true;
      if (from === null) return;
      const [low, high] = [Math.min(from, event.offsetX), Math.max(from, event.offsetX)];
      if (high - low >= 5) axis.set(this.stepAt(Math.max(low, this.gutter)), this.stepAt(high));
      else this.choose(this.cellAt(event.offsetX, event.offsetY));
    });
    canvas.addEventListener("pointercancel", () => {
      start = null;
      this.drag.hidden = true;
    });
    canvas.addEventListener("pointerleave", () => axis.point(null));
    canvas.addEventListener("dblclick", () => axis.reset());
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      axis.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.stepAt(event.offsetX));
    });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    axis.pointers.push((step) => this.showPointer(step));
  }

  showPointer(step) {
    this.line.hidden = step === null || step < axis.low || step > axis.high;
    if (step !== null) this.line.style.left = `${this.gutter + ((step - axis.low) / (axis.high - axis.low)) * (this.width - this.gutter)}px`;
  }

  onKey(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0] };
    const acts = { "+": () => axis.zoom(0.5), "=": () => axis.zoom(0.5), "-": () => axis.zoom(2), 0: () => axis.reset() };
    if (event.ctrlKey || event.metaKey || event.altKey || !this.rows.length) return;
    if (event.key in moves) {
      const [down, right] = moves[event.key];
      const place = this.cursor ? this.rows.indexOf(this.cursor.row) + down : 0;
      const column = this.cursor ? this.cursor.column + right : Math.max(columnOf(this.grid, axis.low), 0);
      const bounded = (value, count) => Math.min(Math.max(value, 0), count - 1);
      this.cursor = { row: this.rows[bounded(place, this.rows.length)], column: bounded(column, this.grid.steps.length) };
      this.tell(this.cursor);
      axis.point(this.grid.steps[this.cursor.column]);
      this.invalidate();
    } else if (event.key in acts) acts[event.key]();
    else if (event.key === "Enter" && this.cursor) this.choose(this.cursor);
    else return;
    event.preventDefault();
  }

  choose(cell) {
    if (!cell) return;
    this.cursor = cell;
    this.tell(cell);
    this.invalidate();
    showTensor(this.grid.names[cell.row], this.canvas);
  }

  // Put the cursor on a tensor; tell whether it is here.
  find(name) {
    const exact = this.grid.names.indexOf(name);
    const row = exact >= 0 ? exact : this.grid.parameters.indexOf(name);
    if (row >= 0) {
      this.cursor = { row, column: Math.max(columnOf(this.grid, axis.low), 0) };
      this.invalidate();
    }
    return row >= 0;
  }
}

// Names without what all of them begin with, up to a slash.
function labelsOf(names) {
  const first = names[0] ?? "";
  let shared = first.lastIndexOf("/") + 1;
  while (shared > 0 && !names.every((name) => name.startsWith(first.slice(0, shared)))) {
    shared = first.lastIndexOf("/", shared - 2) + 1;
  }
  return names.map((name) => name.slice(shared));
}

// What was found on each row, the worst of it.
function severities(grid) {
  const order = ["note", "warning", "problem"];
  const worst = new Map();
  for (const { tensor, severity } of data.findings) {
    if (tensor && order.indexOf(severity) > order.indexOf(worst.get(tensor))) worst.set(tensor, severity);
  }
  return grid.names.map((name, row) => worst.get(name) ?? worst.get(grid.parameters[row]));
}

// A name with dots in the place of its middle, where it is too long: names mostly differ at their ends.
function fitting(context, name, width) {
  if (context.measureText(name).width <= width) return name;
  const most = Math.floor((width / context.measureText("x").width) - 2);
  const head = Math.max(Math.floor(most / 3), 0);
  return `${name.slice(0, head)}..${name.slice(name.length - Math.max(most - head, 1))}`;
}

function drawLegend(parent, grid) {
  const swatch = (color, text) => {
    const box = made("i");
    box.style.background = color;
    return made("span", {}, box, text);
  };
  const bar = made("canvas", { width: 90, height: 1 });
  const context = bar.getContext("2d");
  const stops = SCALES[scaleOf(grid)][theme()];
  for (let x = 0; x < 90; x++) {
    context.fillStyle = `rgb(${mixed(stops, x / 89).join(",")})`;
    context.fillRect(x, 0, 1, 1);
  }
  const [low, high] = grid.share ? ["0 %", "100 %"] : [numberText(grid.low, 2), numberText(grid.high, 2)];
  parent.replaceChildren(made("span", {}, low, bar, high));
  if (!grid.share) parent.append(swatch(styleColor("zero"), "exactly 0"));
  parent.append(swatch(styleColor("inf"), "Inf"), swatch(styleColor("nan"), "NaN"), swatch(styleColor("card"), grid.key === "non_finite" ? "none" : "not saved"));
}
