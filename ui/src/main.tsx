import { render } from "preact";
import "./styles/index.css";
import { App } from "./app.tsx";
import { embeddedSource } from "./data/embedded.ts";
import { serverSource } from "./data/server.ts";
import { startDisplay } from "./display.ts";
import { preparePrinting } from "./print.ts";

/** The shell of `pgdyno serve` says that it is one, and may have no element for us. */
function rootElement(): HTMLElement {
  const found = document.getElementById("app");
  if (found !== null) return found;
  const made = document.createElement("div");
  made.id = "app";
  document.body.append(made);
  return made;
}

const root = rootElement();
root.tabIndex = -1;
const isServed = document.querySelector('meta[name="pgdyno-mode"][content="serve"]') !== null;
startDisplay();
preparePrinting();
if (isServed) root.replaceChildren();
render(<App source={isServed ? serverSource() : embeddedSource()} />, root);
