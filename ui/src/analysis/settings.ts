import type { Setting, Treatment } from "../model.ts";

export interface MatrixRow {
  knob: string;
  layer: Setting["layer"];
  risk: Setting["risk"];
  /** In the order of the treatments; null where the treatment leaves the knob alone. */
  cells: (Setting | null)[];
}

export const LAYER_TITLE: Record<Setting["layer"], string> = {
  postgres: "PostgreSQL",
  kernel: "Kernel",
  memory: "Memory",
  block: "Block devices",
  table: "Tables",
  cpu: "Processors",
  net: "Network",
};

const RISKS: readonly Setting["risk"][] = ["none", "stability", "durability"];

/** One row per knob in the order in which the treatments bring them up, with the gravest risk any
 * of its values has. */
export function settingsMatrix(treatments: readonly Treatment[]): MatrixRow[] {
  const rows = new Map<string, MatrixRow>();
  treatments.forEach((treatment, column) => {
    for (const setting of treatment.settings) {
      const key = `${setting.layer}\u0000${setting.knob}`;
      const row = rows.get(key) ?? {
        knob: setting.knob,
        layer: setting.layer,
        risk: "none" as const,
        cells: treatments.map(() => null),
      };
      row.cells[column] = setting;
      if (RISKS.indexOf(setting.risk) > RISKS.indexOf(row.risk)) row.risk = setting.risk;
      rows.set(key, row);
    }
  });
  return [...rows.values()];
}

export function byLayer(rows: readonly MatrixRow[]): { layer: Setting["layer"]; rows: MatrixRow[] }[] {
  const layers = [...new Set(rows.map((row) => row.layer))];
  return layers.map((layer) => ({ layer, rows: rows.filter((row) => row.layer === layer) }));
}

/** Spelling differences such as spaces or case are not a different value. */
export function isOverridden(setting: Setting): boolean {
  if (setting.effective === null) return false;
  const plain = (text: string) => text.replaceAll(/\s/g, "").toLowerCase();
  return plain(setting.effective) !== plain(setting.value);
}
