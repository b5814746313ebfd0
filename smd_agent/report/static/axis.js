// The steps that all pictures show: one range, which any of them can change, and how wide the names beside them are.
const axis = {
  first: data.first,
  last: Math.max(...data.grids.map((grid) => (grid.steps.length ? endOf(grid, grid.steps.length - 1) : 0)), data.last, data.first + 1),
  followers: [],
  pointers: [],
  gutter: () => (window.innerWidth < 700 ? 56 : 210),

  set(low, high) {
    const least = Math.min(2, axis.last - axis.first);
    const width = Math.min(Math.max(high - low, least), axis.last - axis.first);
    const start = Math.min(Math.max(low - (width - (high - low)) / 2, axis.first), axis.last - width);
    if (start === axis.low && start + width === axis.high) return;
    axis.low = start;
    axis.high = start + width;
    document.getElementById("range").textContent = `steps ${Math.ceil(axis.low)} to ${Math.min(Math.floor(axis.high), data.last)}`;
    for (const follow of axis.followers) follow();
  },

  // Around a step, which stays where it is.
  zoom(factor, around = (axis.low + axis.high) / 2) {
    axis.set(around - (around - axis.low) * factor, around + (axis.high - around) * factor);
  },

  move(share) {
    const by = (axis.high - axis.low) * share;
    axis.set(axis.low + by, axis.high + by);
  },

  reset() {
    axis.set(axis.first, axis.last);
  },

  // A step under the pointer, or null.
  point(step) {
    for (const follow of axis.pointers) follow(step);
  },
};
axis.low = axis.first;
axis.high = axis.last;
