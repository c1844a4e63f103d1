import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "node_modules/", "src/generated/model.ts", "eslint.config.js", "scripts/run.mjs"] },
  ...tseslint.configs.strictTypeChecked,
  ...tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "max-lines": ["error", { max: 200, skipComments: true }],
      "no-console": "error",
      eqeqeq: "error",
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      "@typescript-eslint/consistent-type-imports": "error",
    },
  },
  { files: ["scripts/**"], rules: { "no-console": "off" } },
  {
    files: ["test/served/**"],
    rules: {
      "no-restricted-syntax": ["error", {
        selector: "AwaitExpression > CallExpression[callee.property.name=/^(innerText|textContent|count)$/]",
        message: "What comes from a server comes later on a busy host: await expect.poll(() => ...).",
      }],
    },
  },
);
