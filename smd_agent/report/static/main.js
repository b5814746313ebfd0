// The page's start: numbers are unpacked, then charts and pictures are drawn, and they follow one range of steps.
let waiting = false;
const heatmaps = [];

// Paint once per frame what has changed and is on the screen.
function repaint() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    for (const heatmap of heatmaps) if (heatmap.dirty && heatmap.visible) heatmap.paint();
  });
}

function redraw() {
  for (const own of charts) drawChart(own);
  for (const heatmap of heatmaps) heatmap.restyle();
}

async function start() {
  await Promise.all(data.grids.map(unpack));
  data.details = JSON.parse(new TextDecoder().decode(await inflated(data.details)));
  document.documentElement.classList.add("ready");
  for (const place of document.querySelectorAll("[data-charts]")) {
    for (const spec of data.charts[place.dataset.charts] ?? []) chart(place, spec);
  }
  for (const place of document.querySelectorAll("[data-residuals]")) {
    const bars = data.residuals.map(([low, high, count]) => ({ text: numberText((low + high) / 2, 2), count, kind: "link" }));
    drawBars(place, "Residuals", bars);
  }
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const heatmap = heatmaps.find((one) => one.element === entry.target);
      heatmap.visible = entry.isIntersecting;
    }
    repaint();
  });
  for (const grid of data.grids) {
    const place = document.querySelector(`[data-grid="${grid.key}"]`);
    heatmaps.push(new Heatmap(place, grid));
    watch.observe(place);
  }
  axis.followers.push(followAxis, () => heatmaps.forEach((heatmap) => heatmap.invalidate()));
  connect(heatmaps);
  const [low, high] = [axis.low, axis.high];
  axis.low = axis.high = NaN;
  axis.set(low, high);
  restoreView();
  if (data.live !== null) follow();
  dark.addEventListener("change", redraw);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (width === window.innerWidth) return;
    width = window.innerWidth;
    redraw();
  });
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }));
}

// Without DecompressionStream the still picture and the tables are what there is.
if ("DecompressionStream" in window) start();
