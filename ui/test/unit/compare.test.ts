import { expect, test } from "vitest";
import { settingLines } from "../../src/compare/side.ts";

test("settings that differ are copied as lines of one side", () => {
  const rows = [{ knob: "shared_buffers", a: null, b: "8GB" }, { knob: "vm.swappiness", a: "60", b: "1" }];
  expect(settingLines(rows, "a")).toBe("# shared_buffers: as it was\nvm.swappiness = 60");
  expect(settingLines(rows, "b")).toBe("shared_buffers = 8GB\nvm.swappiness = 1");
  expect(settingLines([], "a")).toBe("");
});
