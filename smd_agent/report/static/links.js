// Ways from a finding to its place, and the tools above the pictures.
function connect(heatmaps) {
  for (const link of document.querySelectorAll("a.place")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      goTo(heatmaps, link.dataset.tensor, Number(link.dataset.first), Number(link.dataset.last), link);
    });
  }
  for (const button of document.querySelectorAll("[data-zoom]")) {
    const acts = { in: () => axis.zoom(0.5), out: () => axis.zoom(2), all: () => axis.reset() };
    button.addEventListener("click", acts[button.dataset.zoom]);
  }
  const filter = document.getElementById("filter");
  filter.addEventListener("input", () => heatmaps.forEach((heatmap) => heatmap.filter(filter.value)));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTensor();
  });
}

// Show the steps of a finding with some before and after them, and its tensor.
function goTo(heatmaps, tensor, first, last, link) {
  const around = (axis.last - axis.first) * 0.15;
  axis.set(first - around, last + around);
  const drawn = charts.find((own) => tensor && own.spec.title === tensor);
  const found = tensor ? heatmaps.filter((one) => one.find(tensor)) : [];
  const heatmap = found.find((one) => one.grid.names.includes(tensor)) ?? found[0];
  const place = drawn?.element ?? heatmap?.element ?? document.getElementById("losses") ?? document.getElementById("tensors");
  if (heatmap && !drawn) showTensor(tensor, link);
  place.scrollIntoView({ block: "start" });
}
