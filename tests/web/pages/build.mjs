// Bundles the pages, as a project would.
import { build } from "esbuild";
import sveltePlugin from "esbuild-svelte";

await build({
  entryPoints: ["svelte.ts", "react.tsx", "vue.ts"],
  bundle: true,
  format: "esm",
  outdir: "dist",
  mainFields: ["svelte", "browser", "module", "main"],
  conditions: ["svelte", "browser"],
  preserveSymlinks: true,
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"development"', __VUE_OPTIONS_API__: "true", __VUE_PROD_DEVTOOLS__: "false", __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false" },
  plugins: [sveltePlugin()],
  logLevel: "warning",
});
