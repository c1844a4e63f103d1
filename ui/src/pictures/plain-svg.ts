/** A self-contained SVG: no variables, no classes, with a ground of the page's colour. */

const NAMESPACE = "http://www.w3.org/2000/svg";
const FONT = "system-ui, 'DejaVu Sans', sans-serif";
const VARIABLE = /var\((--[\w-]+)\)/g;

export interface Size {
  width: number;
  height: number;
}

function valueOf(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

function withoutVariables(element: Element): void {
  for (const { name, value } of [...element.attributes]) {
    if (value.includes("var(")) element.setAttribute(name, value.replaceAll(VARIABLE, (_, variable: string) => valueOf(variable)));
  }
  for (const child of element.children) withoutVariables(child);
}

/** Puts drawn charts of Observable Plot below one another under a title. */
export function plainSvg(drawn: readonly SVGSVGElement[], title: string): { text: string; size: Size } {
  const head = 30;
  const sizes = drawn.map((svg) => ({ width: svg.width.baseVal.value, height: svg.height.baseVal.value }));
  const width = Math.max(320, ...sizes.map((size) => size.width));
  const height = head + sizes.reduce((sum, size) => sum + size.height, 0);
  let top = head;
  const parts = drawn.map((svg, place) => {
    const copy = svg.cloneNode(true) as SVGSVGElement;
    withoutVariables(copy);
    copy.setAttribute("xmlns", NAMESPACE);
    copy.setAttribute("y", String(top));
    copy.setAttribute("color", valueOf("--ink-2"));
    copy.setAttribute("font-family", FONT);
    copy.setAttribute("font-size", "13");
    top += sizes[place]?.height ?? 0;
    return new XMLSerializer().serializeToString(copy);
  });
  return { text: framed(parts.join(""), title, { width, height }), size: { width, height } };
}

/** The ground, the title, and what is drawn on it. */
export function framed(content: string, title: string, { width, height }: Size): string {
  return [
    `<svg xmlns="${NAMESPACE}" width="${String(width)}" height="${String(height)}" viewBox="0 0 ${String(width)} ${String(height)}" font-family="${FONT}">`,
    `<rect width="100%" height="100%" fill="${valueOf("--page")}"/>`,
    `<text x="12" y="20" font-size="14" font-weight="600" fill="${valueOf("--ink")}">${escaped(title)}</text>`,
    content,
    "</svg>",
  ].join("");
}
