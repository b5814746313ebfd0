// A browser that is started without a language may name one that is none; the charts' library does not load then.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en-US" });
}
