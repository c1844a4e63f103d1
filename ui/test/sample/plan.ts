import type { Setting } from "../../src/model.ts";

/** What the sample's steps change and do, before any measuring. */
export interface PlannedStep {
  name: string;
  title: string;
  reason: string | null;
  /** What the step truly does to throughput. */
  ratio: number;
  changes: Omit<Setting, "changed">[];
}

const postgres = (knob: string, value: string, more: Partial<Setting> = {}): Omit<Setting, "changed"> => ({
  knob, value, effective: value, layer: "postgres", risk: "none", ...more,
});

export const STOCK: Omit<Setting, "changed">[] = [
  postgres("shared_buffers", "128MB"),
  postgres("effective_cache_size", "4GB"),
  postgres("work_mem", "4MB"),
  postgres("max_wal_size", "1GB"),
  postgres("checkpoint_timeout", "5min"),
  postgres("wal_buffers", "-1", { effective: "4MB" }),
  postgres("wal_compression", "off"),
  postgres("commit_delay", "0"),
  postgres("huge_pages", "try"),
  { knob: "vm.nr_hugepages", value: "0", effective: "0", layer: "memory", risk: "none" },
  { knob: "read_ahead_kb", value: "128", effective: "128", layer: "block", risk: "none" },
  postgres("cursor_tuple_fraction", "0.1"),
];

export const STEPS: PlannedStep[] = [
  { name: "reference", title: "stock", reason: null, ratio: 1, changes: [] },
  {
    name: "memory", title: "memory", reason: "The hot part of the tables fits into 16 GB", ratio: 1.055,
    changes: [postgres("shared_buffers", "16GB"), postgres("effective_cache_size", "48GB"), postgres("work_mem", "32MB")],
  },
  {
    name: "wal", title: "wal", reason: "Checkpoints come by time, not by volume", ratio: 1.024,
    changes: [postgres("max_wal_size", "32GB"), postgres("checkpoint_timeout", "15min"), postgres("wal_buffers", "64MB")],
  },
  {
    name: "group-commit", title: "compression and group commit", reason: "Fewer and smaller flushes", ratio: 1.172,
    changes: [postgres("wal_compression", "zstd"), postgres("commit_delay", "120")],
  },
  {
    name: "huge-pages", title: "huge pages", reason: null, ratio: 1.001,
    changes: [
      postgres("huge_pages", "on"),
      { knob: "vm.nr_hugepages", value: "8600", effective: "8412", layer: "memory", risk: "stability" },
    ],
  },
  {
    name: "read-ahead", title: "read-ahead", reason: "Random reads drag 128 KiB each from the device", ratio: 1.25,
    changes: [{ knob: "read_ahead_kb", value: "8", effective: "8", layer: "block", risk: "none" }],
  },
  {
    name: "control", title: "control (known to do nothing)", reason: "If this shows an effect, something is wrong with the experiment", ratio: 1,
    changes: [postgres("cursor_tuple_fraction", "0.2")],
  },
];

/** Settings of the step at `index` with those of all steps before it. */
export function settingsUpTo(index: number): Setting[] {
  const settings = new Map<string, Setting>(STOCK.map((setting) => [setting.knob, { ...setting, changed: false }]));
  STEPS.slice(0, index + 1).forEach((step, place) => {
    for (const change of step.changes) settings.set(change.knob, { ...change, changed: place === index });
  });
  return [...settings.values()];
}
