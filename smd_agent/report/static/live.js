// A page that is served follows its run: when that has changed, it is loaded again, and shows the same part of it.
const LOOK_MS = 1000;
const VIEW = "smd_agent view";

function keepView() {
  const whole = axis.low <= axis.first && axis.high >= axis.last;
  const view = { whole, low: axis.low, high: axis.high, filter: document.getElementById("filter").value, top: window.scrollY };
  sessionStorage.setItem(VIEW, JSON.stringify(view));
}

function restoreView() {
  const text = sessionStorage.getItem(VIEW);
  sessionStorage.removeItem(VIEW);
  if (data.live === null || text === null) return;
  const view = JSON.parse(text);
  const filter = document.getElementById("filter");
  if (view.filter) {
    filter.value = view.filter;
    filter.dispatchEvent(new Event("input"));
  }
  if (!view.whole) axis.set(view.low, view.high);
  window.scrollTo(0, view.top);
}

async function follow() {
  const said = document.getElementById("live");
  let waits = LOOK_MS;
  try {
    const answer = await fetch("mark", { cache: "no-store" });
    const changed = answer.ok && (await answer.text()) !== data.live;
    // What somebody looks at stays until it is closed.
    const reading = !document.getElementById("detail").hidden;
    said.textContent = changed && reading ? "There are new steps: shown when the tensor is closed." : "Follows the run.";
    if (changed && !reading) {
      keepView();
      location.reload();
      return;
    }
  } catch {
    said.textContent = "The server has ended: this page stays as it is.";
    waits = 5 * LOOK_MS;
  }
  setTimeout(follow, waits);
}
