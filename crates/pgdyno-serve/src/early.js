// Asks for the report that the address names while the page's script is still on its way; ui/src/data/server.ts takes the answer.
(() => {
  const experiment = /^#\/experiments\/(\d{1,15})(?:\/trials\/\d{1,15})?$/.exec(location.hash)?.[1];
  if (experiment === undefined) return;
  const path = `/api/experiments/${Number(experiment)}/report`;
  const answer = fetch(path, { credentials: "same-origin" });
  // Whoever takes it gets the error.
  answer.catch(() => undefined);
  window.pgdynoEarly = { path, answer };
  // Whoever comes back later wants a new one.
  addEventListener("hashchange", () => delete window.pgdynoEarly, { once: true });
})();
