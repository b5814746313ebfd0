// What the page was made with: the JSON island, and its grids of numbers, which are deflated.
const data = JSON.parse(document.getElementById("data").textContent);

async function inflated(base64) {
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// A grid's codes become `codes`, as they are, and `bytes`, of eight bits, which are painted.
async function unpack(grid) {
  const buffer = await inflated(grid.data);
  grid.data = null;
  grid.codes = grid.bits === 16 ? new Uint16Array(buffer) : new Uint8Array(buffer);
  grid.last = 2 ** grid.bits - 3;
  grid.bytes = grid.bits === 8 ? grid.codes : Uint8Array.from(grid.codes, (code) => byteOf(code, grid.last));
  return grid;
}

function byteOf(code, last) {
  if (code < 2) return code;
  return code > last ? code - last + 253 : 2 + Math.round(((code - 2) * 251) / (last - 2));
}

// The number at a row and a column: NaN, Infinity, or null where there is none.
function valueAt(grid, row, column) {
  const code = grid.codes[row * grid.steps.length + column];
  if (code === 0) return null;
  if (code === 1) return 0;
  if (code > grid.last) return code === grid.last + 1 ? Infinity : NaN;
  const share = (code - 2) / (grid.last - 2);
  return grid.log ? grid.low * Math.exp(share * Math.log(grid.high / grid.low)) : grid.low + share * (grid.high - grid.low);
}

// Values of lines are numbers, or the text of what JSON does not have.
function numberOf(value) {
  if (typeof value === "number") return value;
  return value === "inf" ? Infinity : value === "-inf" ? -Infinity : NaN;
}

function numberText(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Inf" : "-Inf";
  const rounded = Number(value.toPrecision(digits));
  return Math.abs(rounded) >= 10 ** (digits + 3) ? rounded.toExponential() : String(rounded);
}

// A step over all modes, with the number that its mode gives it where that is another one.
function stepText(step) {
  const own = data.modeSteps[step];
  return own ? `${own[0]} step ${own[1]} (step ${step} over all modes)` : `step ${step}`;
}

// The column of a grid that a step falls into; -1 before the first.
function columnOf(grid, step) {
  let low = 0;
  let high = grid.steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (grid.steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Where a column ends: it is as wide as the one before it where it is the last, but a small part of all.
function endOf(grid, column) {
  const steps = grid.steps;
  if (column + 1 < steps.length) return steps[column + 1];
  if (!column) return steps[0] + 1;
  return steps[column] + Math.min(steps[column] - steps[column - 1], Math.max(1, (steps[column] - steps[0]) / 20));
}

// A DOM element whose texts are put in as text.
function made(name, properties = {}, ...parts) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in found && key !== "role") found[key] = value;
    else found.setAttribute(key, value);
  }
  found.append(...parts);
  return found;
}
