import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: "dist",
    target: "es2022",
    // The manifest names what the first page loads; scripts/first-load.mjs measures it.
    manifest: true,
    // A style or image inside a data: address would need a wider content security policy.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
    // What every page needs is one file: a browser has six requests at once, and each waits for the network.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "first", tags: ["$initial"] }] } } },
  },
  server: { proxy: { "/api": process.env.FREEZEFRAME_SERVER ?? "http://127.0.0.1:8000" } },
});
