import { render } from "preact";
import "./styles/index.css";
import { Page } from "./page.tsx";
import { startDisplay } from "./display.ts";
import { loadReport } from "./load.ts";
import { Refusal } from "./parts/refusal.tsx";
import { preparePrinting } from "./print.ts";

const root = document.getElementById("app");
if (root !== null) {
  startDisplay();
  preparePrinting();
  const loaded = loadReport(document.getElementById("pgdyno-data")?.textContent ?? null);
  if (loaded.ok) document.title = `${loaded.report.experiment.name} – pgdyno`;
  render(loaded.ok ? <Page report={loaded.report} /> : <Refusal {...loaded} />, root);
}
