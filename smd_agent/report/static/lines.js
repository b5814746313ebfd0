// Charts of lines over the steps, drawn by uPlot; NaN and Inf are gaps with a mark of their own.
const charts = [];

const LOG_FROM = 50;
// Steps are whole numbers, and so is what lies between two marks.
const WHOLE = [...Array(12).keys()].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));

function chart(parent, spec, options = {}) {
  const own = { parent, spec, options, plot: null };
  const finite = spec.lines.flatMap((line) => line.values.map(numberOf).filter(Number.isFinite));
  own.canLog = finite.length > 0 && finite.every((value) => value > 0);
  const [least, most] = finite.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, 0]);
  own.log = options.log ?? (own.canLog && most / least >= LOG_FROM);
  const head = made("header", {}, made("h3", { textContent: spec.title }));
  const bad = spec.lines.map((line) => line.values.findIndex((value) => !Number.isFinite(numberOf(value))));
  const first = bad.flatMap((place, i) => (place < 0 ? [] : [spec.lines[i].steps[place]]));
  if (first.length) head.append(made("span", { className: "badge problem", textContent: `not finite first at ${stepText(Math.min(...first))}` }));
  if (own.canLog) {
    const button = made("button", { type: "button", textContent: own.log ? "linear scale" : "log scale" });
    button.addEventListener("click", () => {
      own.log = !own.log;
      button.textContent = own.log ? "linear scale" : "log scale";
      drawChart(own);
    });
    head.append(button);
  }
  own.body = made("div");
  own.element = made("div", { className: "chart", "data-chart": spec.title }, head, own.body);
  parent.append(own.element);
  charts.push(own);
  drawChart(own);
  return own;
}

function drawChart(own) {
  if (own.plot) own.plot.destroy();
  const tables = own.spec.lines.map((line) => [line.steps, line.values.map((value) => (Number.isFinite(numberOf(value)) ? value : null))]);
  const joined = tables.length > 1 ? uPlot.join(tables) : tables[0];
  const said = own.spec.lines.map((line) => new Map(line.steps.map((step, i) => [step, line.values[i]])));
  const grid = { stroke: styleColor("line"), width: 1 };
  const font = "12px system-ui, sans-serif";
  const look = { stroke: styleColor("quiet"), grid, ticks: grid, font };
  // Of many powers of ten only these have a line.
  const powers = (plot, splits) => splits.map((value) => (Number.isInteger(Math.round(1e6 * Math.log10(value)) / 1e6) ? value : null));
  const rows = own.log ? { grid: { ...grid, filter: powers }, ticks: { ...grid, filter: powers } } : {};
  // One at the very end would be cut off.
  const steps = (plot, values) => values.map((value) => (value > axis.high - 0.02 * (axis.high - axis.low) ? "" : numberText(value, 9)));
  const numbers = (plot, values) => values.map((value) => (value === null ? "" : numberText(value, 3)));
  own.plot = new uPlot(
    {
      width: Math.max(own.body.clientWidth, 120),
      height: own.options.height ?? 190,
      padding: [8, 0, 0, 0],
      scales: { x: { time: false, range: () => [axis.low, axis.high] }, y: { distr: own.log ? 3 : 1 } },
      axes: [{ ...look, values: steps, incrs: WHOLE }, { ...look, ...rows, size: axis.gutter(), values: numbers }],
      cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: "steps" }, points: { size: 6 } },
      legend: { markers: { width: 3 } },
      series: [
        { label: "step", value: (plot, step) => (step === null || step === undefined ? "–" : stepText(step)) },
        ...own.spec.lines.map((line, number) => ({
          label: line.label,
          stroke: lineColor(number),
          width: 1.6,
          dash: dashOf(line),
          spanGaps: false,
          points: { show: line.steps.length < 60, size: 4 },
          value: (plot, value, series, place) => {
            const step = place === null || place === undefined ? null : plot.data[0][place];
            return step === null || !said[number].has(step) ? "–" : numberText(numberOf(said[number].get(step)));
          },
        })),
      ],
      hooks: {
        setSelect: [(plot) => selected(plot)],
        draw: [(plot) => drawMarks(plot, own.spec)],
      },
    },
    joined,
    own.body,
  );
  own.plot.over.addEventListener("dblclick", () => axis.reset());
  own.element.dataset.low = axis.low;
  own.element.dataset.high = axis.high;
}

// The second run of two has dashes in training, too.
function dashOf(line) {
  const isEval = line.mode === "EVAL";
  if (line.run === 1) return isEval ? [2, 4] : [10, 4];
  return isEval ? [5, 4] : undefined;
}

function selected(plot) {
  const { left, width } = plot.select;
  if (width < 4) return;
  const [low, high] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  axis.set(low, high);
}

function drawMarks(plot, spec) {
  const { left, top, width, height } = plot.bbox;
  const ratio = devicePixelRatio || 1;
  const context = plot.ctx;
  context.save();
  context.beginPath();
  context.rect(left, top - 2, width, height + 4);
  context.clip();
  for (const line of spec.lines) {
    line.values.forEach((value, place) => {
      if (typeof value === "number") return;
      const at = plot.valToPos(line.steps[place], "x", true);
      context.fillStyle = styleColor(Number.isNaN(numberOf(value)) ? "nan" : "inf");
      context.globalAlpha = 0.35;
      context.fillRect(at - ratio, top, 2 * ratio, height);
      context.globalAlpha = 1;
      context.fillRect(at - 3 * ratio, top, 6 * ratio, 6 * ratio);
    });
  }
  const mark = firstBadStep();
  if (mark !== null) {
    const at = plot.valToPos(mark, "x", true);
    context.strokeStyle = styleColor("problem");
    context.setLineDash([4 * ratio, 3 * ratio]);
    context.lineWidth = ratio;
    context.beginPath();
    context.moveTo(at, top);
    context.lineTo(at, top + height);
    context.stroke();
  }
  context.restore();
}

// The step from which on something is wrong that was not wrong from the beginning.
function firstBadStep() {
  const steps = data.findings.filter((one) => one.severity === "problem" && one.first > data.first).map((one) => one.first);
  return steps.length ? Math.min(...steps) : null;
}

function followAxis() {
  for (const own of charts) {
    own.plot.setScale("x", { min: axis.low, max: axis.high });
    own.element.dataset.low = axis.low;
    own.element.dataset.high = axis.high;
  }
}

function forgetChart(own) {
  own.plot.destroy();
  charts.splice(charts.indexOf(own), 1);
}
