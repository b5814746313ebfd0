// Colours of numbers: a scale from low to high, and colours of their own for NaN, Inf and exactly zero.
const dark = matchMedia("(prefers-color-scheme: dark)");

const SCALES = {
  size: { light: ["#e3eefb", "#9cc3ea", "#4a8fd0", "#1a5da6", "#08264f"], dark: ["#14243a", "#1d4a7d", "#2f7fc4", "#7fbcf0", "#e8f4ff"] },
  share: { light: ["#f3eef9", "#cdb5e6", "#9b72c9", "#6a3ba3", "#3a1466"], dark: ["#231a30", "#4b2f70", "#7d52b3", "#b48be0", "#efe3ff"] },
  bad: { light: ["#f7c3c8", "#ee7f8b", "#e11428"], dark: ["#7a2630", "#c03243", "#ff3347"] },
};

const LINES = {
  light: ["#1f6fc4", "#d9720b", "#2a9048", "#8a4fc0", "#b0762c", "#c2478d", "#3a8f94", "#6b7280"],
  dark: ["#62adf5", "#ffa64d", "#62cf82", "#bd93f0", "#dcae6c", "#f08bc4", "#6fd0d6", "#a3adba"],
};

function theme() {
  return dark.matches ? "dark" : "light";
}

function styleColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function mixed(stops, share) {
  const at = share * (stops.length - 1);
  const start = Math.min(Math.floor(at), stops.length - 2);
  const [from, to] = [rgb(stops[start]), rgb(stops[start + 1])];
  return from.map((part, i) => Math.round(part + (to[i] - part) * (at - start)));
}

function scaleOf(grid) {
  return grid.key === "non_finite" ? "bad" : grid.share ? "share" : "size";
}

// The colour of each code of eight bits, as a word of a canvas' pixels.
function palette(grid) {
  const words = new Uint32Array(256);
  const word = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  const stops = SCALES[scaleOf(grid)][theme()];
  words[0] = word(rgb(styleColor("card")));
  words[1] = grid.share ? word(mixed(stops, 0)) : word(rgb(styleColor("zero")));
  for (let code = 2; code < 254; code++) words[code] = word(mixed(stops, (code - 2) / 251));
  words[254] = word(rgb(styleColor("inf")));
  words[255] = word(rgb(styleColor("nan")));
  return words;
}

function lineColor(number) {
  const colors = LINES[theme()];
  return colors[number % colors.length];
}
