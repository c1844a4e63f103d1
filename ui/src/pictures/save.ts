import type uPlot from "uplot";
import type { Heat } from "../model.ts";
import { heatSvg } from "./heat-svg.ts";
import type { Decor } from "./time-decor.ts";
import { plainSvg, type Size } from "./plain-svg.ts";
import { timeSvg } from "./time-svg.ts";

/** A chart that can be saved. */
export type Picture =
  | { kind: "drawn"; svgs: SVGSVGElement[]; title: string }
  | { kind: "time"; chart: uPlot; title: string; unit?: string; decor: Decor }
  | { kind: "heat"; heat: Heat; width: number; title: string; ylabel: string; unit: string };

export type PictureFormat = "png" | "svg";

/** Dots per CSS pixel of a PNG, so that it is sharp in print and on large screens. */
const DENSITY = 2;

function fileName(title: string, format: PictureFormat): string {
  const bare = title.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "-").replaceAll(/^-+|-+$/g, "");
  return `pgdyno-${bare === "" ? "chart" : bare.slice(0, 80)}.${format}`;
}

function hand(address: string, name: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

function svgOf(picture: Picture): { text: string; size: Size } {
  if (picture.kind === "time") return timeSvg(picture.chart, picture.unit === undefined || picture.unit === "" ? picture.title : `${picture.title}, ${picture.unit}`, picture.decor);
  if (picture.kind === "heat") return heatSvg(picture.heat, picture.width, picture.title, picture.ylabel, picture.unit);
  return plainSvg(picture.svgs, picture.title);
}

function asAddress(svg: string): string {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}

async function rastered(svg: string, { width, height }: Size): Promise<string> {
  const image = new Image();
  image.src = asAddress(svg);
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = width * DENSITY;
  canvas.height = height * DENSITY;
  const pen = canvas.getContext("2d");
  if (pen === null) throw new Error("this browser gives no canvas");
  pen.scale(DENSITY, DENSITY);
  pen.drawImage(image, 0, 0);
  return canvas.toDataURL("image/png");
}

/** Gives the chart to the reader as a file. */
export async function savePicture(picture: Picture, format: PictureFormat): Promise<void> {
  const name = fileName(picture.title, format);
  const { text, size } = svgOf(picture);
  hand(format === "svg" ? asAddress(text) : await rastered(text, size), name);
}
