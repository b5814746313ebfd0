// The panel about one tensor: what is known of it, its lines over the steps, and its histograms.
let shownCharts = [];
let returnTo = null;

function showTensor(name, from = null) {
  const panel = document.getElementById("detail");
  const parameter = parameterOf(name);
  hideTensor();
  returnTo = from;
  const close = made("button", { type: "button", textContent: "close" });
  close.addEventListener("click", hideTensor);
  panel.replaceChildren(made("header", {}, made("h3", { className: "name", textContent: parameter ?? name }), close));
  panel.hidden = false;
  document.body.classList.add("open");
  const related = relatedNames(name, parameter);
  for (const one of data.findings.filter((found) => related.includes(found.tensor) || found.tensor === parameter)) {
    const words = `${one.severity}: ${one.rule} of ${one.tensor}, ${stepText(one.first)}`;
    panel.append(made("p", { className: one.severity === "problem" ? "odd" : "", textContent: words }));
  }
  panel.append(made("p", { className: "quiet", textContent: formOf(related) }));
  for (const [isShare, title] of [[false, "over the steps"], [true, "share"]]) {
    const lines = linesOf(name, parameter, isShare);
    if (lines.length) shownCharts.push(chart(panel, { title, lines }, { height: 170 }));
  }
  for (const own of related) panel.append(...statisticsOf(own));
  panel.dataset.tensor = name;
}

function hideTensor() {
  const panel = document.getElementById("detail");
  if (panel.hidden) return;
  shownCharts.forEach(forgetChart);
  shownCharts = [];
  panel.hidden = true;
  document.body.classList.remove("open");
  panel.replaceChildren();
  if (returnTo) returnTo.focus({ preventScroll: true });
}

function parameterOf(name) {
  for (const grid of data.grids) {
    const row = grid.names.indexOf(name);
    if (row >= 0) return grid.parameters[row];
  }
  return name;
}

// The tensor's own name, and those of the parameter's gradient, weights and updates.
function relatedNames(name, parameter) {
  const names = new Set([name]);
  for (const grid of data.grids) {
    grid.names.forEach((own, row) => {
      if (own === name || grid.parameters[row] === parameter) names.add(own);
    });
  }
  return [...names];
}

function linesOf(name, parameter, isShare) {
  const lines = [];
  for (const grid of data.grids) {
    if (grid.key === "non_finite" || grid.share !== isShare) continue;
    grid.names.forEach((own, row) => {
      if (own !== name && grid.parameters[row] !== parameter) return;
      const line = { label: grid.title, mode: "", steps: [], values: [] };
      grid.steps.forEach((step, column) => {
        const value = valueAt(grid, row, column);
        if (value === null) return;
        line.steps.push(step);
        line.values.push(Number.isFinite(value) ? value : Number.isNaN(value) ? "nan" : "inf");
      });
      // A share that is 0 at all steps says nothing.
      if (line.steps.length && !(isShare && line.values.every((value) => value === 0))) lines.push({ ...line, label: isShare ? own : line.label });
    });
  }
  return lines;
}

function formOf(names) {
  const known = names.map((name) => data.details[name]).filter(Boolean);
  const form = known.find((one) => one.shape?.length);
  const state = known.find((one) => one.state);
  const parts = form ? [`${form.dtype}, shape ${form.shape.join("x")}`] : [];
  if (state) parts.push(state.state === "trained" ? "trained" : `not trained: ${state.state}`);
  return parts.join("; ");
}

// Statistics of the first and the last saved step in a table, and what histograms there are.
function statisticsOf(name) {
  const known = data.details[name];
  if (!known || !known.ends.some((end) => Object.keys(end.numbers).length)) return [];
  const kinds = [...new Set(known.ends.flatMap((end) => Object.keys(end.numbers)))];
  const head = made("tr", {}, made("th", { textContent: "" }), ...kinds.map((kind) => made("th", { className: "n", textContent: kind.replace("_", " ") })));
  const rows = known.ends.map((end) =>
    made("tr", {}, made("td", { textContent: stepText(end.step) }), ...kinds.map((kind) => {
      const value = end.numbers[kind];
      return made("td", { className: "n", textContent: value === undefined ? "–" : numberText(numberOf(value)) });
    })),
  );
  const table = made("div", { className: "scroll", tabIndex: 0 }, made("table", {}, made("thead", {}, head), made("tbody", {}, ...rows)));
  const bars = made("div", { className: "columns" });
  const found = [made("h3", { className: "name", textContent: name }), table, bars];
  document.getElementById("detail").append(...found);
  for (const end of known.ends) if (end.histogram) drawBars(bars, `Histogram at ${stepText(end.step)}`, barsOf(end.histogram));
  return found;
}
