// Bars: of a tensor's elements by sign and power of two, or of residuals.
const HISTOGRAM = { zero: 129, inf: 258, nan: 259 };

function bucketText(place) {
  if (place === 0) return "-Inf";
  if (place === HISTOGRAM.zero) return "0";
  if (place === HISTOGRAM.inf) return "Inf";
  if (place === HISTOGRAM.nan) return "NaN";
  return place < HISTOGRAM.zero ? `-${numberText(2 ** (64 - place), 2)}` : numberText(2 ** (place - 194), 2);
}

// From pairs of bucket and count, bars for all buckets between the first and the last one; NaN and Inf at the ends.
function barsOf(histogram) {
  const counts = new Map(histogram);
  const usual = histogram.map(([place]) => place).filter((place) => place > 0 && place < HISTOGRAM.inf);
  const bars = counts.has(0) ? [{ text: "-Inf", count: counts.get(0), kind: "inf" }] : [];
  for (let place = Math.min(...usual); place <= Math.max(...usual); place++) {
    bars.push({ text: bucketText(place), count: counts.get(place) ?? 0, kind: place === HISTOGRAM.zero ? "zero" : "link" });
  }
  for (const kind of ["inf", "nan"]) {
    if (counts.has(HISTOGRAM[kind])) bars.push({ text: bucketText(HISTOGRAM[kind]), count: counts.get(HISTOGRAM[kind]), kind });
  }
  return bars;
}

// Heights are those of square roots, so that few elements are seen beside many.
function drawBars(parent, title, bars) {
  const canvas = made("canvas", { className: "bars", role: "img" });
  const all = bars.reduce((sum, bar) => sum + bar.count, 0);
  const largest = bars.reduce((most, bar) => Math.max(most, bar.count), 1);
  canvas.setAttribute("aria-label", `${title}: ${bars.filter((bar) => bar.count).map((bar) => `${bar.text}: ${bar.count}`).join(", ")}`);
  const status = made("p", { className: "quiet", textContent: `${all} elements` });
  parent.append(made("div", {}, made("h3", { textContent: title }), canvas, status));
  const ratio = devicePixelRatio || 1;
  const [width, height] = [Math.max(canvas.clientWidth, 100) * ratio, 120 * ratio];
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const step = width / Math.max(bars.length, 1);
  const foot = 16 * ratio;
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  context.textAlign = "center";
  let free = -1;
  bars.forEach((bar, i) => {
    const tall = bar.count ? Math.max(Math.sqrt(bar.count / largest) * (height - foot - 4), 2 * ratio) : 0;
    context.fillStyle = styleColor(bar.kind);
    context.fillRect(i * step, height - foot - tall, Math.max(step - ratio, 1), tall);
    const wide = context.measureText(bar.text).width;
    const middle = Math.min(Math.max((i + 0.5) * step, wide / 2), width - wide / 2);
    if (middle - wide / 2 > free) {
      context.fillStyle = styleColor("quiet");
      context.fillText(bar.text, middle, height - 3 * ratio);
      free = middle + wide / 2 + 8 * ratio;
    }
  });
  canvas.addEventListener("pointermove", (event) => {
    const bar = bars[Math.floor((event.offsetX * ratio) / step)];
    if (bar) status.textContent = `${bar.text}: ${bar.count} of ${all} elements`;
  });
}
